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
	var results []vmtest.Result
	var errs []error
	for version := range strings.SplitSeq(o.kernels, ",") {
		began := time.Now()
		r, err := o.boot(ctx, version, bin)
		results = append(results, r...)
		if err != nil {
			errs = append(errs, fmt.Errorf("kernel %s: %w", version, err))
		}
		fmt.Printf("kernel %s: %.0f s\n", version, time.Since(began).Seconds())
	}
	printTable(results)
	return errors.Join(errs...)
}

// boot runs the scenarios on one kernel.
func (o *options) boot(ctx context.Context, version, bin string) ([]vmtest.Result, error) {
	i := slices.IndexFunc(vmtest.Kernels, func(k vmtest.Kernel) bool { return k.Version == version })
	if i < 0 {
		return nil, errors.New("no such kernel")
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	tools, err := vmtest.Fetch(ctx, o.dir, vmtest.Kernels[i])
	if err != nil {
		return nil, err
	}
	logs := filepath.Join(o.logs, version)
	if err := os.RemoveAll(logs); err != nil {
		return nil, err
	}
	collector := &vmtest.Collector{To: os.Stdout}
	vm := &vmtest.VM{
		Tools: tools, Init: filepath.Join(bin, "init"), Output: collector, Logs: logs,
		Files: map[string]string{"/bin/guest": filepath.Join(bin, "guest"), "/bin/agent": filepath.Join(bin, "agent")},
		// The machine is to fail by itself, with its logs, before it is switched off.
		Command: append([]string{"/bin/guest", "-timeout", (o.timeout - time.Minute).String()}, o.guest...),
	}
	code, err := vm.Run(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("failed (exit code %d); logs are in %s", code, logs)
	}
	return collector.Results, err
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
