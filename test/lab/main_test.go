// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// crashDir makes this test binary another process: it makes a lab in that
// directory and ends without cleaning up, as if killed.
const crashDir = "OVN_UPLINK_LAB_TEST_CRASH"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := crash(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func crash(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := lab.New(ctx, lab.Options{Dir: dir, NoAPIServer: true})
	if err != nil {
		return err
	}
	n, err := l.AddNode(ctx, "worker-a")
	if err != nil {
		return err
	}
	if err := n.StartOVS(ctx); err != nil {
		return err
	}
	if _, err := n.StartOVN(ctx, lab.OVNSpec{}); err != nil {
		return err
	}
	// A process with a child, and one that does not care for SIGTERM.
	_, parent := n.Start(ctx, "parent", []string{"sh", "-c", "sleep 600 & wait"}, nil)
	_, stubborn := n.Start(ctx, "stubborn", []string{"sh", "-c", "trap '' TERM; while :; do sleep 600; done"}, nil)
	return errors.Join(parent, stubborn)
}
