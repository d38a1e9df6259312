// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestName(t *testing.T) {
	long := strings.Repeat("n", 230)
	for name, tc := range map[string]struct{ uplink, node, want string }{
		"as the seed shows":        {"tenant-blue", "worker-a", "tenant-blue.worker-a"},
		"node names may have dots": {"blue", "worker-a.example.com", "blue.worker-a.example.com"},
		"exactly the limit":        {strings.Repeat("u", 22), long, strings.Repeat("u", 22) + "." + long},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Name(tc.uplink, tc.node); got != tc.want {
				t.Errorf("Name = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNameIsShortenedReadably(t *testing.T) {
	uplink, node := strings.Repeat("u", 63), strings.Repeat("n", 253)
	got := Name(uplink, node)
	if len(got) > maxName {
		t.Errorf("%d characters", len(got))
	}
	if !strings.HasPrefix(got, uplink+"."+"nnnnn") {
		t.Errorf("%q does not begin with the names", got)
	}
	if other := Name(uplink, node[:252]+"m"); other == got {
		t.Error("two nodes that differ in the part that is cut have the same name")
	}
	if Name(uplink, node) != got {
		t.Error("the name is not stable")
	}
}

// The cut must not leave a label that ends in '-' or is empty.
func TestNameIsCutAtALabel(t *testing.T) {
	for _, node := range []string{
		strings.Repeat("a-", 126) + "b", strings.Repeat("a.", 126) + "b", strings.Repeat("a", 178) + strings.Repeat("-", 70) + "b",
	} {
		if problems := validation.IsDNS1123Subdomain(Name(strings.Repeat("u", 63), node)); len(problems) > 0 {
			t.Errorf("node %q: %v", node, problems)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("tenant-blue", "worker-a")
	f.Add(strings.Repeat("u", 63), strings.Repeat("n.", 126)+"n")
	f.Fuzz(func(t *testing.T, uplink, node string) {
		if len(validation.IsDNS1123Label(uplink)) > 0 || len(validation.IsDNS1123Subdomain(node)) > 0 {
			t.Skip("the API server admits no such names")
		}
		if problems := validation.IsDNS1123Subdomain(Name(uplink, node)); len(problems) > 0 {
			t.Errorf("Name(%q, %q) = %q: %v", uplink, node, Name(uplink, node), problems)
		}
	})
}
