// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
	"github.com/flowgate/flowgate/portstatus"
)

// pluginEnv makes the test binary a CNI plugin: see plugin.
const pluginEnv = "FLOWGATE_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if addr := os.Getenv(pluginEnv); addr != "" {
		if err := plugin(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// plugin waits, in a process of its own, for each version that it reads and
// says when its mark is set.
func plugin(addr string) error {
	db, err := vswitchdb.New(addr, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	go func() { _ = db.Run(ctx) }()
	for {
		var ver string
		if _, err := fmt.Scanln(&ver); err != nil {
			return nil // the test has ended
		}
		row, err := portstatus.WaitInstalled(ctx, db, "br0", "web-0", ver, nil)
		if err != nil {
			return err
		}
		fmt.Println(row.ExternalIDs["iface-id-ver"])
	}
}
