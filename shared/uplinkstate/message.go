// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxMessage is the length in bytes to which condition messages are cut. The API takes 32768; what a person
// reads in `kubectl describe` is far shorter.
const MaxMessage = 1024

// Message makes text fit for a condition: valid UTF-8 on one line, no control characters (what comes from
// another program or the other side of the split may hold any), at most MaxMessage bytes, cut between runes.
func Message(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	clean = strings.TrimSpace(clean)
	if len(clean) <= MaxMessage {
		return clean
	}
	const ellipsis = "…"
	cut := MaxMessage - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(clean[cut]) {
		cut--
	}
	return clean[:cut] + ellipsis
}
