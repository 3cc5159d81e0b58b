package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	fastTimeout      = 15 * time.Second // then an immediate shutdown, which costs a recovery at the next start
	immediateTimeout = 10 * time.Second
)

// steps of a shutdown: fast, then immediate.
var steps = []struct {
	signal   syscall.Signal
	patience time.Duration
}{{syscall.SIGINT, fastTimeout}, {syscall.SIGQUIT, immediateTimeout}}

// stop stops the server of the data directory, whoever started it, and returns
// when it has stopped.
func (in *install) stop() error {
	p, ok := readPidFile(in.cluster)
	if !ok {
		return nil
	}
	// FindProcess holds on to the process where the system can, so that the
	// signal goes to the one that we have looked at.
	process, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer process.Release()
	if !isPostmaster(p.pid, in.cluster) {
		return nil
	}
	begun := time.Now()
	for _, step := range steps {
		if err := process.Signal(step.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), step.patience)
		for isPostmaster(p.pid, in.cluster) && pause(ctx, pollInterval) == nil {
		}
		cancel()
		if !isPostmaster(p.pid, in.cluster) {
			in.removeSocketDir(p.socketDir)
			in.log.Info("PostgreSQL stopped", "pid", p.pid, "dir", in.dir, "took", time.Since(begun).Round(time.Millisecond))
			return nil
		}
	}
	return fmt.Errorf("process %d does not stop", p.pid)
}
