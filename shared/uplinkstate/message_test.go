// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMessage(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain":              {"interface ovsbr1 is down", "interface ovsbr1 is down"},
		"lines become one":   {"a\nb\tc\r\n", "a b c"},
		"control characters": {"a\x1b[31mred\x00", "a[31mred"},
		"not UTF-8":          {"a\xffb", "a?b"},
		"other scripts":      {"Brücke 橋", "Brücke 橋"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Message(tc.in); got != tc.want {
				t.Errorf("Message(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("plain")
	f.Add(strings.Repeat("橋", MaxMessage))
	f.Add("\xff\x00" + strings.Repeat("é", MaxMessage))
	f.Fuzz(func(t *testing.T, in string) {
		got := Message(in)
		if len(got) > MaxMessage || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Errorf("Message(%q) = %q", in, got)
		}
		if Message(got) != got {
			t.Errorf("cleaning %q twice changes it", got)
		}
	})
}
