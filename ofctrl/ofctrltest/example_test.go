// SPDX-License-Identifier: Apache-2.0

package ofctrltest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

// agent is the code under test: it lets the port pod1 reach the uplink.
func agent(ctx context.Context, conn *ofctrl.Conn) error {
	flow, err := flowtext.ParseFlow("cookie=0x1,ip,in_port=2,actions=output:1", nil)
	if err != nil {
		return err
	}
	return conn.Exec(ctx, flow)
}

// Test your agent in ten lines. In a test, [ofctrltest.New] takes the place of
// Start and Close.
func Example() {
	ctx := context.Background()
	sw, _ := ofctrltest.Start(nil)
	defer sw.Close()
	sw.AddPort("uplink", nil)
	sw.AddPort("pod1", nil)
	nc, _ := sw.Connect(ctx, nil)
	conn, _ := ofctrl.Client(ctx, nc, nil)
	defer conn.Close()

	fmt.Println("agent:", agent(ctx, conn))

	fmt.Println("flows:", sw.Flows())
	trace, _ := sw.Inject("pod1", "tcp,nw_src=10.0.0.2,nw_dst=10.0.0.9,tp_dst=80")
	fmt.Println("pod1 to uplink:", trace.Outputs)
	trace, _ = sw.Inject("uplink", "tcp,nw_src=10.0.0.9,nw_dst=10.0.0.2,tp_src=80")
	fmt.Println("uplink to pod1:", trace.Outputs)
	// Output:
	// agent: <nil>
	// flows: [cookie=0x1, ip,in_port=2 actions=output:1]
	// pod1 to uplink: [uplink]
	// uplink to pod1: []
}

func ExampleSwitch_Refuse() {
	ctx := context.Background()
	sw, _ := ofctrltest.Start(nil)
	defer sw.Close()
	nc, _ := sw.Connect(ctx, nil)
	conn, _ := ofctrl.Client(ctx, nc, nil)
	defer conn.Close()

	const flowMod = 14                                           // OFPT_FLOW_MOD
	sw.Refuse(flowMod, 1, &ofctrl.SwitchError{Type: 5, Code: 1}) // table full
	fmt.Println(agent(ctx, conn) != nil, sw.Flows())
	fmt.Println(agent(ctx, conn) != nil, len(sw.Flows()))
	// Output:
	// true []
	// false 1
}

// A port that takes three minutes to get its number, in milliseconds: inside
// synctest the clock runs as soon as everybody waits.
func TestPortThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		sess := ofctrl.NewSession(sw, nil)
		tracker := portstatus.New(&portstatus.Options{DB: sw.DB(), Bridge: sw.Name()})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go func() { _ = sess.Run(ctx) }()
		go func() { _ = tracker.Run(ctx, sess) }()

		// The row is there; ovs-vswitchd comes to it after three minutes.
		sw.AddPort("pod1", &ofctrltest.PortOptions{Late: true})
		time.AfterFunc(3*time.Minute, func() {
			sw.ConfigurePort("pod1", func(o *ofctrltest.PortOptions) { o.Late = false })
		})
		start := time.Now()
		port, err := tracker.Wait(ctx, "pod1", portstatus.Live)
		require.NoError(t, err)
		require.EqualValues(t, 1, port.Number)
		require.Equal(t, 3*time.Minute, time.Since(start))
	})
}
