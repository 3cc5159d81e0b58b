package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	startLockName = "start.lock"
	useLockName   = "use.lock"
	logName       = "postgres.log"
	clusterName   = "pg"
	socketDirName = "run"
)

// leaveTimeout limits how long Close waits for others that start or stop.
const leaveTimeout = time.Minute

// install is one data folder with the wishes of one caller.
type install struct {
	cfg     Config
	log     *slog.Logger
	dir     string // absolute, without symbolic links
	cluster string // PostgreSQL's data directory
}

// open checks the configuration and makes sure that the folder exists and is
// ours to use.
func open(cfg Config) (*install, error) {
	if err := checkSettings(cfg.Settings); err != nil {
		return nil, err
	}
	if cfg.DataDir == "" {
		return nil, errors.New("localpg: no data folder given")
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err == nil {
		err = makeFolder(dir)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("localpg: data folder: %w", err)
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &install{cfg: cfg, log: log, dir: dir, cluster: filepath.Join(dir, clusterName)}, nil
}

// makeFolder creates the folder or takes an empty one. A folder with somebody
// else's files is refused: as root we would hand it to another user.
func makeFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	if exists(filepath.Join(dir, startLockName)) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return notOurs(dir)
	}
	if err != nil {
		return err
	}
	ours := []string{startLockName, useLockName, ".gitignore", ".gitkeep", ".DS_Store", "lost+found"}
	for _, entry := range entries {
		if !slices.Contains(ours, entry.Name()) {
			return fmt.Errorf("%s holds other files (%s) and no server of ours: choose an empty folder", dir, entry.Name())
		}
	}
	return os.Chmod(dir, 0o700)
}

// join takes the start lock, becomes a user, and makes sure a server runs.
func (in *install) join(ctx context.Context) (*Server, error) {
	start, err := in.lockStart(ctx)
	if err != nil {
		return nil, fmt.Errorf("localpg: %w", err)
	}
	defer start.release()

	use, err := in.openLock(useLockName)
	if err != nil {
		return nil, fmt.Errorf("localpg: %w", err)
	}
	// Only the holder of the start lock ever takes this one exclusively.
	if ok, err := use.try(syscall.LOCK_SH); err != nil || !ok {
		use.Close()
		return nil, errors.Join(fmt.Errorf("localpg: %s is held by a foreign program", use.Name()), err)
	}
	socketDir, err := in.ensure(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("localpg: %w", err), in.leaveLocked(use))
	}
	return &Server{in: in, socketDir: socketDir, use: use}, nil
}

// leave is the end of one use. It holds the start lock, so that nobody can
// come in between the look at the other users and the stop.
func (in *install) leave(use *lockFile) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), leaveTimeout,
		fmt.Errorf("another process has been starting or stopping for %s", leaveTimeout))
	defer cancel()
	start, err := in.lockStart(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		// The folder was deleted under us; the server notices by itself.
		return use.release()
	}
	if err != nil {
		// Whoever holds the start lock is a user, and leaves after us.
		return errors.Join(fmt.Errorf("localpg: leave: %w", err), use.release())
	}
	defer start.release()
	return in.leaveLocked(use)
}

func (in *install) leaveLocked(use *lockFile) error {
	defer use.release()
	last, err := use.try(syscall.LOCK_EX)
	if err != nil {
		return fmt.Errorf("localpg: leave: %w", err)
	}
	if !last {
		return nil
	}
	if err := in.stop(); err != nil {
		return fmt.Errorf("localpg: stop PostgreSQL: %w", err)
	}
	return nil
}

// lockStart holds everybody else who wants to start or stop the server. It
// tries again when the folder was deleted and made anew while it waited.
func (in *install) lockStart(ctx context.Context) (*lockFile, error) {
	for {
		lock, err := in.openLock(startLockName)
		if err != nil {
			return nil, err
		}
		if err = lock.wait(ctx); err == nil {
			return lock, nil
		}
		lock.Close()
		if !errors.Is(err, errReplaced) {
			return nil, err
		}
	}
}

func (in *install) openLock(name string) (*lockFile, error) {
	uid, gid, err := owner(in.dir)
	if err != nil {
		return nil, err
	}
	lock, err := openLock(filepath.Join(in.dir, name), identity{switched: os.Geteuid() == 0, uid: uid, gid: gid})
	if errors.Is(err, fs.ErrPermission) {
		return nil, notOurs(in.dir)
	}
	return lock, err
}

func notOurs(dir string) error {
	uid, _, err := owner(dir)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s belongs to uid %d, we are uid %d: run as that user or as root, or choose another folder", dir, uid, os.Geteuid())
}

// oneLine flattens an error: joined errors come with line breaks.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
