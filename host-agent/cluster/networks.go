// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
)

// reconcileNetwork sees to the UplinksReady of one CUDN.
func (t *term) reconcileNetwork(ctx context.Context, name string) (reconcile.Result, error) {
	wish, exists := t.world.networkReady(name)
	if !exists {
		t.networkWrites.forget(name)
		return reconcile.Result{}, nil
	}
	return t.onNetwork().publish(ctx, name, wish)
}
