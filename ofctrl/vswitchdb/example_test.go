// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// withDB runs an example on a private Open vSwitch. An agent has its own in
// place of the sandbox, and the same lines else.
func withDB(example func(ctx context.Context, sb *ovssandbox.Sandbox, db *vswitchdb.DB) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sb, err := ovssandbox.Start(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = sb.Close() }()

	db, err := vswitchdb.New(sb.DBAddr(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	running, stop := context.WithCancel(ctx)
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return db.Run(running) })
	group.Go(func() error {
		defer stop()
		return example(running, sb, db)
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		fmt.Println(err)
	}
}

// What happens to the ports of a bridge, in order.
func ExampleDB_WatchInterfaces() {
	withDB(func(ctx context.Context, sb *ovssandbox.Sandbox, db *vswitchdb.DB) error {
		if _, err := sb.AddPort(ctx, "br0", "p1", nil); err != nil {
			return err
		}
		for event, err := range db.WatchInterfaces(ctx, "br0") {
			if err != nil {
				return err
			}
			if event.Interface.Name == "br0" {
				continue // every bridge has a port of its own name
			}
			switch event.Kind {
			case vswitch.InterfaceSet:
				fmt.Println("set", event.Interface.Name)
			case vswitch.InterfaceDeleted:
				fmt.Println("deleted", event.Interface.Name)
				return nil
			case vswitch.InterfacesSynced:
				fmt.Println("this is the whole bridge")
				if _, err := sb.Vsctl(ctx, "del-port", "p1"); err != nil {
					return err
				}
			case vswitch.DatabaseDown:
				fmt.Println("no database:", event.Err)
			}
		}
		return nil
	})
	// Output:
	// set p1
	// this is the whole bridge
	// deleted p1
}

// A mark is for one life of an interface: it is not written to a row that has
// taken its place.
func ExampleDB_SetExternalIDs() {
	withDB(func(ctx context.Context, sb *ovssandbox.Sandbox, db *vswitchdb.DB) error {
		if _, err := sb.AddPort(ctx, "br0", "p1", nil); err != nil {
			return err
		}
		for event, err := range db.WatchInterfaces(ctx, "br0") {
			if err != nil {
				return err
			}
			if event.Interface.Name != "p1" {
				continue
			}
			guard := vswitch.Guard{UUID: event.Interface.UUID}
			mark := map[string]string{"flowgate-installed": "true"}
			ok, err := db.SetExternalIDs(ctx, guard, mark, nil)
			fmt.Println("marked:", ok, err)

			// The same name, another interface.
			if _, err := sb.Vsctl(ctx, "del-port", "p1", "--", "add-port", "br0", "p1"); err != nil {
				return err
			}
			ok, err = db.SetExternalIDs(ctx, guard, mark, nil)
			fmt.Println("marked:", ok, err)
			return nil
		}
		return nil
	})
	// Output:
	// marked: true <nil>
	// marked: false <nil>
}

// Opening a switch that was started held, and knowing that it is open.
func ExampleDB_ClearFlowRestoreWait() {
	withDB(func(ctx context.Context, _ *ovssandbox.Sandbox, db *vswitchdb.DB) error {
		if err := db.SetFlowRestoreWait(ctx); err != nil { // before ovs-vswitchd starts
			return err
		}
		cfg, err := db.ClearFlowRestoreWait(ctx)
		if err != nil {
			return err
		}
		if err := db.WaitConfig(ctx, cfg); err != nil {
			return err
		}
		set, err := db.FlowRestoreWait(ctx)
		fmt.Println("ovs-vswitchd has it; still set:", set, err)
		return nil
	})
	// Output:
	// ovs-vswitchd has it; still set: false <nil>
}

// A port whose number no restart changes.
func ExampleDB_AllocateOFPort() {
	withDB(func(ctx context.Context, sb *ovssandbox.Sandbox, db *vswitchdb.DB) error {
		number, err := db.AllocateOFPort(ctx)
		if err != nil {
			return err
		}
		ofport, err := sb.AddPort(ctx, "br0", "p1", &ovssandbox.PortOptions{OFPortRequest: uint32(number)})
		fmt.Println(ofport, err)
		return nil
	})
	// Output:
	// 32768 <nil>
}

// The database of an Open vSwitch that runs somewhere else than usual.
func ExampleDefaultAddr() {
	previous, set := os.LookupEnv("OVS_RUNDIR")
	os.Setenv("OVS_RUNDIR", "/var/lib/agent/ovs")
	fmt.Println(vswitchdb.DefaultAddr())
	if set {
		os.Setenv("OVS_RUNDIR", previous)
	} else {
		os.Unsetenv("OVS_RUNDIR")
	}
	// Output:
	// unix:/var/lib/agent/ovs/db.sock
}
