// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Eventually calls check until it returns nil, at most for d. It returns
// check's last error, wrapped with how long was waited. check's context ends
// with d, so a call inside it cannot outlast the wait. Between calls it waits
// 10 ms, then longer, up to 200 ms.
func Eventually(ctx context.Context, d time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var last error
	wait := 10 * time.Millisecond
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// An attempt that was cut off by the deadline says less than the
		// complete one before it.
		if last == nil || ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		if pause(ctx, wait) != nil {
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return fmt.Errorf("gave up waiting (%w): %w", cause, last)
			}
			return fmt.Errorf("not within %s: %w", d, last)
		}
		wait = min(wait*3/2, 200*time.Millisecond)
	}
}
