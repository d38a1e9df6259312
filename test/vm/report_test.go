// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"strings"
	"testing"
)

// Logs as test binaries write them with -test.v=test2json; ^V marks a line of the testing package.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, log string
		want      []string
	}{
		{"pass", "^V=== RUN   TestA\n^V--- PASS: TestA (0.01s)\n^VPASS\n", []string{"TestA:"}},
		{"fail with its output", "^V=== RUN   TestA\n    a_test.go:7: wrong\n^V--- FAIL: TestA (0.01s)\n^VFAIL\n",
			[]string{"TestA:failed in the guest:wrong"}},
		{"skip", "^V=== RUN   TestA\n    a_test.go:7: no VRF\n^V--- SKIP: TestA (0.00s)\n^VPASS\n",
			[]string{"TestA:skipped in the guest:no VRF"}},
		{"subtests", "^V=== RUN   TestA\n^V=== RUN   TestA/10.0.0.0/8\n^V=== RUN   TestA/10.0.0.0/8/x\n" +
			"^V--- FAIL: TestA (0.01s)\n    ^V--- FAIL: TestA/10.0.0.0/8 (0.01s)\n        ^V--- PASS: TestA/10.0.0.0/8/x (0.01s)\n^VFAIL\n",
			[]string{"TestA:failed in the guest:", "TestA>10.0.0.0/8:failed in the guest:", "TestA>10.0.0.0/8>x:"}},
		{"panic", "^V=== RUN   TestA\n^V--- FAIL: TestA (0.00s)\npanic: oh no\n\ngoroutine 1 [running]:\n",
			[]string{"TestA:did not end in the guest:oh no"}},
		{"guest gone", "^V=== RUN   TestA\n^V--- PASS: TestA (0.01s)\n^V=== RUN   TestB\nhalf a li",
			[]string{"TestA:", "TestB:did not end in the guest:half a li"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := parse(t.Context(), strings.ReplaceAll(c.log, "^V", "\x16"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var walk func(above string, r *result)
			walk = func(above string, r *result) {
				for _, b := range r.below {
					got = append(got, above+b.name+":"+b.fault())
					if i := len(got) - 1; i < len(c.want) {
						if _, said, _ := strings.Cut(c.want[i], "guest:"); !strings.Contains(b.output.String(), said) {
							t.Errorf("output of %s lacks %q: %q", b.name, said, b.output.String())
						}
					}
					walk(above+b.name+">", b)
				}
			}
			walk("", all)
			if len(got) != len(c.want) {
				t.Fatalf("results are %q, want %q", got, c.want)
			}
			for i := range got {
				if want, _, _ := strings.Cut(c.want[i], "guest:"); got[i] != want && got[i] != want+"guest" {
					t.Errorf("result %q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}
