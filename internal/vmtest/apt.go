// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// suite is a Debian release as a source of packages. Its package lists are
// private, so those of the machine are neither needed nor touched. Its servers
// are those of the machine's own sources.
type suite struct {
	name string
	dir  string // where its lists and packages go
}

// openSuite makes the private lists of a release and updates them.
func openSuite(ctx context.Context, name, dir string) (*suite, error) {
	s := &suite{name, dir}
	for _, d := range []string{"lists/partial", "cache/archives/partial", "sources", "packages"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	sources, err := sourcesOf(name, "/etc/apt")
	if err != nil {
		return nil, err
	}
	for file, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, "sources", file), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	_, err = s.apt(ctx, "apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update")
	return s, err
}

// suiteLine is a line that names releases: the Suites of a .sources file, or a
// line of a .list file.
var suiteLine = regexp.MustCompile(`(?m)^Suites:.*$|^deb .*$`)

// sourcesOf returns the machine's sources for another release.
func sourcesOf(name, etc string) (map[string]string, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return nil, err
	}
	here := regexp.MustCompile(`(?m)^VERSION_CODENAME=(\w+)$`).FindSubmatch(release)
	if here == nil {
		return nil, errors.New("/etc/os-release names no VERSION_CODENAME")
	}
	var files []string
	for _, pattern := range []string{"sources.list", "sources.list.d/*.list", "sources.list.d/*.sources"} {
		found, err := filepath.Glob(filepath.Join(etc, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	sources := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(file)
		if base == "sources.list" {
			base = "main.list"
		}
		sources[base] = otherSuite(string(text), string(here[1]), name)
	}
	return sources, nil
}

// otherSuite replaces a release by another one. The updates that a release gets
// between its point releases end with its support.
func otherSuite(text, from, to string) string {
	return suiteLine.ReplaceAllStringFunc(text, func(line string) string {
		switch {
		case !strings.Contains(line, from):
			return "# " + line // not of this release, as a vendor's repository
		case strings.HasPrefix(line, "deb ") && strings.Contains(line, from+"-updates"):
			return "# " + line
		}
		return strings.ReplaceAll(strings.ReplaceAll(line, from+"-updates", ""), from, to)
	})
}

func (s *suite) apt(ctx context.Context, program string, args ...string) (string, error) {
	all := []string{
		"-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3",
		"-o", "Dir::Etc::SourceList=/dev/null",
		"-o", "Dir::Etc::SourceParts=" + filepath.Join(s.dir, "sources"),
		"-o", "Dir::State::Lists=" + filepath.Join(s.dir, "lists"),
		"-o", "Dir::Cache=" + filepath.Join(s.dir, "cache"),
	}
	cmd := exec.CommandContext(ctx, program, append(all, args...)...)
	cmd.Dir = filepath.Join(s.dir, "packages")
	return output(cmd)
}

// unpack downloads packages and unpacks them into a directory.
func (s *suite) unpack(ctx context.Context, into string, packages ...string) error {
	if _, err := s.apt(ctx, "apt-get", append([]string{"-qq", "download"}, packages...)...); err != nil {
		return err
	}
	for _, name := range packages {
		found, err := filepath.Glob(filepath.Join(s.dir, "packages", name+"_*.deb"))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("package %s: nothing was downloaded (%w)", name, err)
		}
		if _, err := output(exec.CommandContext(ctx, "dpkg-deb", "-x", found[0], into)); err != nil {
			return err
		}
		if err := os.Remove(found[0]); err != nil {
			return err
		}
	}
	return nil
}

// missing are the packages that apt would install for one: itself, and what it
// needs and this machine lacks.
func (s *suite) missing(ctx context.Context, name string) ([]string, error) {
	plan, err := s.apt(ctx, "apt-get", "install", "--no-install-recommends", "-y", "-s", name)
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, m := range regexp.MustCompile(`(?m)^Inst (\S+)`).FindAllStringSubmatch(plan, -1) {
		packages = append(packages, m[1])
	}
	return packages, nil
}

// dependency is the first package that a meta package depends on.
func (s *suite) dependency(ctx context.Context, meta string) (string, error) {
	text, err := s.apt(ctx, "apt-cache", "depends", meta)
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^\s*Depends: (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("package %s of %s depends on nothing", meta, s.name)
	}
	return m[1], nil
}

// output runs a command and returns what it printed.
func output(cmd *exec.Cmd) (string, error) {
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}
