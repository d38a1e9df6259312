// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func TestNewerOVN(t *testing.T) {
	b, err := lab.NewerOVN(t.Context(), t.Logf)
	t.Logf("%+v, %v", b, err)
}
