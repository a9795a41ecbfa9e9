// SPDX-License-Identifier: Apache-2.0

// E2e replays field reports on the kernel's datapath, in a machine for each
// kernel, and ends with a table of what was measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/internal/vmtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// programs are built statically and put into the machine's /bin.
var programs = map[string]string{
	"init":  "./internal/vmtest/init",
	"guest": "./internal/vmtest/guest",
	"agent": "./examples/agent",
}

type options struct {
	dir, logs, kernels string
	timeout            time.Duration
	parallel           int
	guest              []string // arguments
}

func run(ctx context.Context) error {
	var o options
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	var short bool
	var only string
	flag.StringVar(&o.dir, "dir", filepath.Join(cache, "flowgate-vmtest"), "`directory` for what is downloaded")
	flag.StringVar(&o.logs, "logs", "e2e-logs", "`directory` for the logs of a failed run")
	flag.StringVar(&o.kernels, "kernels", "5.10,6.1", "`versions` of the kernels to run on")
	flag.DurationVar(&o.timeout, "timeout", 30*time.Minute, "bound for each kernel")
	flag.IntVar(&o.parallel, "parallel", 1, "how many machines run at a time: milliseconds are worth less with several")
	flag.BoolVar(&short, "short", false, "fewer rounds, connections and ports")
	flag.StringVar(&only, "run", "", "run only scenarios whose name matches this `expression`")
	flag.Parse()
	o.guest = []string{"-run", only}
	if short {
		o.guest = append(o.guest, "-short")
	}

	bin, err := os.MkdirTemp("", "e2e-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin) //nolint:errcheck // a temporary directory
	for name, pkg := range programs {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, name), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
		}
	}
	var machines []*machine
	for version := range strings.SplitSeq(o.kernels, ",") {
		i := slices.IndexFunc(vmtest.Kernels, func(k vmtest.Kernel) bool { return k.Version == version })
		if i < 0 {
			return fmt.Errorf("kernel %s: no such kernel", version)
		}
		tools, err := vmtest.Fetch(ctx, o.dir, vmtest.Kernels[i])
		if err != nil {
			return err
		}
		machines = append(machines, &machine{version: version, tools: tools})
	}
	var g errgroup.Group
	g.SetLimit(max(1, o.parallel))
	for _, m := range machines {
		g.Go(func() error {
			began := time.Now()
			m.err = o.boot(ctx, m, bin)
			fmt.Printf("kernel %s: %.0f s\n", m.version, time.Since(began).Seconds())
			return nil
		})
	}
	_ = g.Wait() // each machine has its own error
	var results []vmtest.Result
	var errs []error
	for _, m := range machines {
		results = append(results, m.results...)
		if m.err != nil {
			errs = append(errs, fmt.Errorf("kernel %s: %w", m.version, m.err))
		}
	}
	printTable(results)
	return errors.Join(errs...)
}

// machine is one kernel's.
type machine struct {
	version string
	tools   *vmtest.Tools
	results []vmtest.Result
	err     error
}

// boot runs the scenarios on one kernel.
func (o *options) boot(ctx context.Context, m *machine, bin string) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	logs := filepath.Join(o.logs, m.version)
	if err := os.RemoveAll(logs); err != nil {
		return err
	}
	collector := &vmtest.Collector{To: os.Stdout, Name: m.version}
	vm := &vmtest.VM{
		Tools: m.tools, Init: filepath.Join(bin, "init"), Output: collector, Logs: logs,
		Files: map[string]string{"/bin/guest": filepath.Join(bin, "guest"), "/bin/agent": filepath.Join(bin, "agent")},
		// The machine is to fail by itself, with its logs, before it is switched off.
		Command: append([]string{"/bin/guest", "-timeout", (o.timeout - time.Minute).String()}, o.guest...),
	}
	code, err := vm.Run(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("failed (exit code %d); logs are in %s", code, logs)
	}
	m.results = collector.Results
	return err
}

// printTable prints the results as a table in Markdown.
func printTable(results []vmtest.Result) {
	if len(results) == 0 {
		return
	}
	fmt.Printf("\nOpen vSwitch %s, emulated machine with 2 processors\n\n", results[0].OVS)
	fmt.Println("| scenario | how | kernel | measured |")
	fmt.Println("| --- | --- | --- | --- |")
	slices.SortStableFunc(results, func(a, b vmtest.Result) int { return strings.Compare(a.Scenario, b.Scenario) })
	for _, r := range results {
		outcome := r.Figures
		if r.Error != "" {
			outcome = "FAILED: " + r.Error
		}
		fmt.Printf("| %s | %s | %s | %s |\n", r.Scenario, r.Way, r.Kernel, outcome)
	}
}
