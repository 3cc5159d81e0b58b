package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const maxLogSize = 16 << 20 // the log is put aside at the next start then

// errTryAgain says that a server exited for a reason that passes: another one,
// or what is left of it, is still on the data directory, or somebody stopped it.
var errTryAgain = errors.New("starting again did not help")

// defaults are the settings that Config.Settings may change.
func defaults() map[string]string {
	return map[string]string{
		"max_connections":    "200",
		"fsync":              "on",
		"synchronous_commit": "on",
		"timezone":           "UTC",
		"log_timezone":       "UTC",
	}
}

// settingName is the one spelling of a setting: the server reads names in any
// case, and a dash as an underscore.
func settingName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }

// checkSettings refuses those that would take the server out of our hands, or
// open it to others.
func checkSettings(settings map[string]string) error {
	fixed := []string{
		"config_file", "data_directory", "external_pid_file", "hba_file", "ident_file", "lc_messages", "listen_addresses",
		"log_destination", "logging_collector", "port", "unix_socket_directories", "unix_socket_group", "unix_socket_permissions",
	}
	for name := range settings {
		if slices.Contains(fixed, settingName(name)) {
			return fmt.Errorf("localpg: setting %s cannot be changed", name)
		}
	}
	return nil
}

// child is a server that we have started.
type child struct {
	process *os.Process
	exited  chan struct{}
	stopped bool // by somebody, rather than by a fault; valid once exited
	log     string
	logFrom int64 // where its part of the log begins
}

// start starts the server and does not wait for it.
func (l *launcher) start() (*child, error) {
	if err := l.in.removeStale(l.socketDir); err != nil {
		return nil, err
	}
	settings := defaults()
	for name, value := range l.in.cfg.Settings {
		settings[settingName(name)] = value
	}
	args := []string{
		"-D", l.in.cluster,
		"-k", l.socketDir,
		"-p", port,
		"-c", "listen_addresses=",
		"-c", "unix_socket_permissions=0700",
		"-c", "lc_messages=C",
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	log, err := l.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(l.binDir, "postgres"), args...)
	// A file, not a pipe: the server outlives us.
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", serverEnv(), l.as.attr()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	c := &child{process: cmd.Process, exited: make(chan struct{}), log: log.Name(), logFrom: from}
	go func() {
		cmd.Wait() // what it died of is in the log
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		c.stopped = cmd.ProcessState.Success() || status.Signaled() && status.Signal() == syscall.SIGKILL
		close(c.exited)
	}()
	return c, nil
}

func (l *launcher) openLog() (*os.File, error) {
	path := filepath.Join(l.in.dir, logName)
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := l.as.own(log); err != nil {
		log.Close()
		return nil, err
	}
	return log, nil
}

func (c *child) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// failure tells why the server exited.
func (c *child) failure() error {
	var said []byte
	if log, err := os.Open(c.log); err == nil {
		defer log.Close()
		said, _ = io.ReadAll(io.NewSectionReader(log, c.logFrom, 1<<20))
	}
	err := fmt.Errorf("PostgreSQL did not start: %s (log: %s)", telling(said), c.log)
	if c.stopped {
		return fmt.Errorf("%w: %w", errTryAgain, err)
	}
	for _, sign := range []string{`.pid" already exists`, `.lock" already exists`, "is still in use"} {
		if bytes.Contains(said, []byte(sign)) {
			return fmt.Errorf("%w: %w", errTryAgain, err)
		}
	}
	return err
}

// untilFound returns when the pid file names the server, a moment after its
// start, or it has exited.
func (c *child) untilFound(cluster string) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	for !c.hasExited() {
		if p, ok := readPidFile(cluster); ok && p.pid == c.process.Pid {
			return
		}
		if pause(ctx, pollInterval) != nil {
			c.process.Kill() // not even begun, and nobody would ever find it
			<-c.exited
		}
	}
}

// telling picks the line that says what went wrong.
func telling(output []byte) string {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	for _, word := range []string{"PANIC:", "FATAL:", "error:"} {
		for _, line := range slices.Backward(lines) {
			if _, after, ok := bytes.Cut(line, []byte(word)); ok {
				return string(bytes.TrimSpace(after))
			}
		}
	}
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
