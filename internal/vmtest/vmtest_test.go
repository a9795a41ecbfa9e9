// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the format newc looks like, a record at a time.
func TestArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, []byte("hello"), 0o755))
	var b bytes.Buffer
	a := newArchive(&b)
	a.file("/usr/bin/f", file)
	a.symlink("/bin", "usr/bin")
	a.device("/dev/console", 5, 1)
	require.True(t, a.has("/usr/bin"))
	require.NoError(t, a.close())

	var got []string
	for rest := b.Bytes(); len(rest) > 0; {
		const headerLen = 110
		header := string(rest[:headerLen])
		require.Equal(t, "070701", header[:6])
		field := func(i int) int {
			var n int
			for _, c := range []byte(header[6+8*i : 14+8*i]) {
				n = n<<4 + bytes.IndexByte([]byte("0123456789abcdef"), c)
			}
			return n
		}
		mode, size, nameLen := field(1), field(6), field(11)
		name := string(rest[headerLen : headerLen+nameLen-1])
		begin := (headerLen + nameLen + 3) &^ 3
		content := string(rest[begin : begin+size])
		rest = rest[(begin+size+3)&^3:]
		if name == "TRAILER!!!" {
			require.Empty(t, rest)
			break
		}
		kind := map[int]string{modeDir: "d", modeFile: "f", modeSymlink: "l", modeChar: "c"}[mode&0o170000]
		got = append(got, kind+" "+name+" "+content)
	}
	require.Equal(t, []string{"d usr ", "d usr/bin ", "f usr/bin/f hello", "l bin usr/bin", "d dev ", "c dev/console "}, got)
}

func TestArchiveOfWhatIsMissing(t *testing.T) {
	a := newArchive(&bytes.Buffer{})
	a.file("/f", filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, a.close(), os.ErrNotExist)
}

func TestOtherSuite(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"Types: deb\nSuites: bookworm bookworm-updates\n", "Types: deb\nSuites: bullseye \n"},
		{"Suites: bookworm-security\n", "Suites: bullseye-security\n"},
		{"Suites: stable\n", "# Suites: stable\n"},
		{"deb http://host/debian bookworm main\n", "deb http://host/debian bullseye main\n"},
		{"deb http://host/debian bookworm-updates main\n", "# deb http://host/debian bookworm-updates main\n"},
		{"deb http://vendor/apt stable main\n", "# deb http://vendor/apt stable main\n"},
	} {
		require.Equal(t, test.want, otherSuite(test.in, "bookworm", "bullseye"))
	}
}

func TestOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.ErrorIs(t, once(dir, func(string) error { return os.ErrInvalid }), os.ErrInvalid)
	require.NoDirExists(t, dir)
	for range 2 {
		require.NoError(t, once(dir, func(tmp string) error {
			require.NoDirExists(t, dir)
			return os.WriteFile(filepath.Join(tmp, "f"), nil, 0o644)
		}))
		require.FileExists(t, filepath.Join(dir, "f"))
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestCollector(t *testing.T) {
	want := Result{Kernel: "5.10", OVS: "3.1.0", Scenario: "s", Way: "w", Figures: "1 of 1", Seconds: 2}
	failed := Result{Kernel: "6.1", Scenario: "s", Way: "x", Error: "no"}
	var wire bytes.Buffer
	wire.WriteString("booting\r\n")
	require.NoError(t, want.Print(&wire))
	require.NoError(t, failed.Print(&wire))
	wire.WriteString("done\n")

	var out bytes.Buffer
	c := Collector{To: &out, Name: "6.1"}
	for _, b := range wire.Bytes() { // however it comes
		n, err := c.Write([]byte{b})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Equal(t, []Result{want, failed}, c.Results)
	require.Equal(t, "6.1   booting\n5.10  s, w: 1 of 1 (2 s)\n6.1   s, x: FAILED: no (0 s)\n6.1   done\n", out.String())
	_, err := c.Write([]byte(resultMark + "{\n"))
	require.ErrorContains(t, err, "the result")
}

// The machine's last words: the exit code, and its logs if it has failed.
func TestResult(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "result")
	vm := &VM{Logs: filepath.Join(dir, "logs")}
	for _, text := range []string{"", "1", "one\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		_, err := vm.result(file)
		require.ErrorIs(t, err, ErrNoExit, text)
	}
	require.NoError(t, os.WriteFile(file, []byte("0\n"), 0o644))
	code, err := vm.result(file)
	require.NoError(t, err)
	require.Zero(t, code)

	b := bytes.NewBufferString("3\n")
	z := gzip.NewWriter(b)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "../agent.log", Mode: 0o644, Size: 2}))
	_, err = w.Write([]byte("hi"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	code, err = vm.result(file)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	text, err := os.ReadFile(filepath.Join(vm.Logs, "agent.log"))
	require.NoError(t, err)
	require.Equal(t, "hi", string(text))
}
