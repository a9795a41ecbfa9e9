// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
	}
	goleak.VerifyTestMain(m)
}
