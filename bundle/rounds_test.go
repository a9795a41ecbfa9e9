// SPDX-License-Identifier: Apache-2.0

package bundle_test

import "os"

// rounds is how many rounds a test on random input runs: short by default, long
// under 'make long', which sets FLOWGATE_LONG.
func rounds(short int) int {
	if os.Getenv("FLOWGATE_LONG") == "" {
		return short
	}
	return short * longFactor
}

const longFactor = 100
