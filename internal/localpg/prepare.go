package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// launcher is all that is needed to start a server.
type launcher struct {
	in        *install
	binDir    string
	as        identity
	socketDir string
}

// prepare finds the programs, settles whom they run as, and makes the data
// directory if there is none.
func (in *install) prepare(ctx context.Context) (*launcher, error) {
	written, err := in.dataVersion()
	if err != nil {
		return nil, err
	}
	binDir, err := in.findPrograms(ctx, written)
	if err != nil {
		return nil, err
	}
	as, major, err := in.settle(ctx, binDir)
	if err != nil {
		return nil, err
	}
	switch {
	case major < oldestMajor:
		return nil, fmt.Errorf("PostgreSQL %d in %s is too old: %d or later is needed", major, binDir, oldestMajor)
	case written == 0:
		if err := in.initialise(ctx, binDir, as); err != nil {
			return nil, err
		}
	case written != major:
		return nil, fmt.Errorf("the data in %s was written by PostgreSQL %d, but the server in %s is PostgreSQL %d: "+
			"set %s to the programs of version %d, or choose another data folder", in.dir, written, binDir, major, binVariable, written)
	}
	socketDir, err := in.makeSocketDir(ctx, binDir, as)
	if err != nil {
		return nil, err
	}
	return &launcher{in: in, binDir: binDir, as: as, socketDir: socketDir}, nil
}

// dataVersion tells the major version that wrote the data directory, 0 if
// there is none yet.
func (in *install) dataVersion() (int, error) {
	data, err := os.ReadFile(filepath.Join(in.cluster, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(in.cluster); errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		return 0, fmt.Errorf("%s is damaged: it has no file PG_VERSION", in.cluster)
	}
	if err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("%s is damaged: PG_VERSION: %w", in.cluster, err)
	}
	return version, nil
}

func (in *install) findPrograms(ctx context.Context, major int) (string, error) {
	switch {
	case in.cfg.BinDir != "":
		if !hasPrograms(in.cfg.BinDir) {
			return "", fmt.Errorf("no initdb and postgres in %s", in.cfg.BinDir)
		}
		return filepath.Abs(in.cfg.BinDir)
	case major != 0:
		return findMajor(ctx, major)
	default:
		return Find()
	}
}

// initialise makes the data directory under another name and renames it when
// it is complete. The name is new each time: the initdb of a process that was
// killed may still be writing.
func (in *install) initialise(ctx context.Context, binDir string, as identity) error {
	unfinished, _ := filepath.Glob(filepath.Join(in.dir, clusterName+".new-*"))
	for _, dir := range unfinished {
		os.RemoveAll(dir) // what remains is only in nobody's way
	}
	dir, err := os.MkdirTemp(in.dir, clusterName+".new-*")
	if err == nil {
		err = giveTree(dir, as)
	}
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "initdb"),
		"--pgdata="+dir,
		"--username="+superuser,
		"--encoding=UTF8",
		"--locale=C", // the same order of text on every machine
		"--auth-local=trust",
		"--auth-host=reject",
		"--data-checksums",
		"--no-instructions",
	)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", serverEnv(), as.attr()
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("initdb: %w: %s", err, telling(out.Bytes()))
	}
	if err := os.Rename(dir, in.cluster); err != nil {
		return err
	}
	return syncFolder(in.dir)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// serverEnv is the environment of PostgreSQL's programs: none of the caller's
// PG variables, and messages in English, which we read.
func serverEnv() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
