// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Only the benchmarks use libOpenflow's stream, which leaves these behind.
	const stream = "antrea.io/libOpenflow/util."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(stream+"(*streamWorker).parse"),
		goleak.IgnoreAnyFunction(stream+"(*MessageStream).inbound"), goleak.IgnoreAnyFunction(stream+"(*MessageStream).outbound"))
}
