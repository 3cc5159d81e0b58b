package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile is an open file that can carry a flock. The kernel drops the lock
// when its holder dies, however it dies, so no lock is ever stale.
type lockFile struct{ *os.File }

// errReplaced says that the file was removed or replaced while we waited: a
// lock on it excludes nobody any more.
var errReplaced = errors.New("lock file was replaced")

func openLock(path string, owner identity) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := owner.own(f); err != nil {
		f.Close()
		return nil, err
	}
	return &lockFile{f}, nil
}

// try takes the lock (syscall.LOCK_SH or LOCK_EX) if it is free. When an
// upgrade fails the lock held before may be lost.
func (l *lockFile) try(how int) (bool, error) {
	for {
		err := syscall.Flock(int(l.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, fmt.Errorf("lock %s: %w", l.Name(), err)
		}
	}
}

// wait takes the lock exclusively. It polls because a blocked flock cannot be
// cancelled.
func (l *lockFile) wait(ctx context.Context) error {
	for {
		ok, err := l.try(syscall.LOCK_EX)
		if err != nil {
			return err
		}
		if ok {
			return l.current()
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", l.Name(), err)
		}
	}
}

// current checks that the path still leads to the file we have locked.
func (l *lockFile) current() error {
	ours, err := l.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(l.Name())
	if err != nil || !os.SameFile(ours, there) {
		return errReplaced
	}
	return nil
}

// release unlocks before closing: a child that is between fork and exec at
// this moment holds a copy of the descriptor, and with it the lock.
func (l *lockFile) release() error {
	return errors.Join(syscall.Flock(int(l.Fd()), syscall.LOCK_UN), l.Close())
}

// pause sleeps for d, less if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
