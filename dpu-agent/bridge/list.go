// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"strings"
)

// maxListed is how many things a message names; the rest is counted.
const maxListed = 8

// limit joins texts, the first few of them.
func limit(texts []string) string {
	if len(texts) <= maxListed {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:maxListed], ", "), len(texts)-maxListed)
}

func list(candidates []Candidate) string {
	texts := make([]string, len(candidates))
	for i, c := range candidates {
		texts[i] = c.String()
	}
	return limit(texts)
}
