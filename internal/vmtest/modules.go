// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// wantedModules are loaded before the payload starts. Of these that are named
// with a question mark one kernel or the other has none.
var wantedModules = []string{
	"crc32c_generic?", "openvswitch", "nf_conntrack", "nf_nat", "nf_conntrack_netlink", "veth", "sch_netem",
	"nf_log_syslog?", "nf_log_ipv4?",
}

// moduleFiles returns the files of the wanted modules and of all that they
// depend on, in an order in which they can be loaded.
func moduleFiles(dir string, wanted []string) ([]string, error) {
	files := map[string]string{} // by name
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			files[moduleName(name)] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var order []string
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		file, ok := files[name]
		if !ok {
			return fmt.Errorf("no module %s in %s", name, dir)
		}
		info, err := moduleInfo(file)
		if err != nil {
			return err
		}
		for dependency := range strings.SplitSeq(info["depends"], ",") {
			if dependency == "" {
				continue
			}
			if err := add(moduleName(dependency)); err != nil {
				return err
			}
		}
		order = append(order, file)
		return nil
	}
	for _, name := range wanted {
		name, optional := strings.CutSuffix(name, "?")
		if _, ok := files[name]; !ok && optional {
			continue
		}
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// moduleName is the one spelling of a module's name.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// moduleInfo reads what modinfo(8) shows.
func moduleInfo(file string) (map[string]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s: not a kernel module", file)
	}
	data, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	info := map[string]string{}
	for field := range bytes.SplitSeq(data, []byte{0}) {
		if key, value, ok := strings.Cut(string(field), "="); ok {
			info[key] = value
		}
	}
	return info, nil
}
