// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts child processes on one operating system thread. The parent
// death signal of a child comes when the thread that started it ends, and Go
// ends threads as it likes; a thread that a goroutine has locked it leaves
// alone.
type spawner struct {
	jobs chan spawnJob
	quit chan struct{}
	wg   sync.WaitGroup
}

type spawnJob struct {
	cmd    *exec.Cmd
	result chan<- error
}

// newSpawner starts the thread; close ends it.
func newSpawner() *spawner {
	s := &spawner{jobs: make(chan spawnJob), quit: make(chan struct{})}
	s.wg.Go(s.loop)
	return s
}

func (s *spawner) loop() {
	runtime.LockOSThread()
	// Unlocked at the end, the thread goes back to Go. Left locked, it would
	// end with the goroutine, and take a child that still runs with it.
	defer runtime.UnlockOSThread()
	for {
		select {
		case job := <-s.jobs:
			job.result <- job.cmd.Start()
		case <-s.quit:
			return
		}
	}
}

// start is cmd.Start on the spawner's thread. The child is killed when this
// process dies, and gets no Ctrl-C that is meant for this process.
func (s *spawner) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttr()
	result := make(chan error, 1)
	select {
	case s.jobs <- spawnJob{cmd, result}:
		return <-result
	case <-s.quit:
		return ErrClosed
	}
}

func (s *spawner) close() {
	close(s.quit)
	s.wg.Wait()
}
