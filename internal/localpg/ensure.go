package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	pollInterval  = 5 * time.Millisecond
	retryInterval = 50 * time.Millisecond
	answerTimeout = 15 * time.Second // of a server that says it is ready
	deafTimeout   = 2 * time.Second  // a postmaster without a working socket is stopped then
	retryTimeout  = 90 * time.Second // for what an old server leaves behind to go away
)

// condition is what there is on a data directory.
type condition int

const (
	absent  condition = iota // nothing runs
	busy                     // a server is starting or recovering
	deaf                     // a server runs but lets nobody in, or is stopping
	serving                  // a server answers
)

// ensure returns when a server answers: the one that is there, or a new one.
// The start lock is held, so nobody else starts one; but servers whose users
// were killed may be in any state, and a new one exits if it meets an old one
// that is still shutting down. So it looks again after every step.
func (in *install) ensure(ctx context.Context) (socketDir string, err error) {
	begun := time.Now()
	var deafSince time.Time
	var launch *launcher
	var child *child
	defer func() {
		if err != nil && child != nil {
			// Others may be using it already. Whether it stays is up to who
			// leaves last, and they go by its pid file.
			child.untilFound(in.cluster)
		}
	}()
	for {
		there, p, lookErr := in.look(ctx)
		if ctx.Err() != nil {
			return "", in.gaveUp(ctx, there)
		}
		switch {
		case there == serving:
			if child == nil || child.process.Pid != p.pid {
				in.log.DebugContext(ctx, "PostgreSQL was running already", "pid", p.pid, "dir", in.dir)
			} else {
				in.log.InfoContext(ctx, "PostgreSQL started", "pid", p.pid, "dir", in.dir, "took", time.Since(begun).Round(time.Millisecond))
			}
			return p.socketDir, nil

		case there == deaf && deafSince.IsZero():
			deafSince = time.Now()

		case there == deaf && time.Since(deafSince) > deafTimeout && child != nil && child.process.Pid == p.pid:
			return "", fmt.Errorf("PostgreSQL started on %s but cannot be used: %w", in.dir, lookErr) // another would be no better

		case there == deaf && time.Since(deafSince) > deafTimeout:
			in.log.WarnContext(ctx, "stopping a PostgreSQL server that does not answer", "pid", p.pid, "dir", in.dir, "error", lookErr)
			if err := in.stop(); err != nil {
				return "", fmt.Errorf("stop a server that does not answer: %w", err)
			}

		case there == absent && child != nil && child.hasExited():
			if err := child.failure(); !errors.Is(err, errTryAgain) || time.Since(begun) > retryTimeout {
				return "", err
			}
			child = nil
			pause(ctx, retryInterval)

		case there == absent && child == nil:
			if launch == nil {
				if launch, err = in.prepare(ctx); ctx.Err() != nil {
					return "", in.gaveUp(ctx, there)
				} else if err != nil {
					return "", err
				}
			}
			if child, err = launch.start(); err != nil {
				return "", err
			}
		}
		if there != deaf {
			deafSince = time.Time{}
		}
		if pause(ctx, pollInterval) != nil {
			return "", in.gaveUp(ctx, there)
		}
	}
}

func (in *install) gaveUp(ctx context.Context, there condition) error {
	doing := map[condition]string{busy: " (it is starting or recovering)", deaf: " (it does not answer)"}
	return fmt.Errorf("gave up waiting for PostgreSQL on %s%s: %w", in.dir, doing[there], context.Cause(ctx))
}

// look judges by talking to the server. That a process exists proves nothing:
// it may be a zombie, or a stranger with a recycled process id.
func (in *install) look(ctx context.Context) (condition, pidFile, error) {
	p, ok := readPidFile(in.cluster)
	if !ok {
		return absent, p, nil
	}
	var err error
	if p.status == "ready" {
		if err = in.greet(ctx, p.socketDir); err == nil {
			return serving, p, nil
		}
	}
	if !isPostmaster(p.pid, in.cluster) {
		return absent, p, err
	}
	var answer *pgconn.PgError
	switch {
	case p.status == "stopping": // of a smart shutdown, as long as anybody is connected
		return deaf, p, errors.New("it is stopping")
	case p.status != "ready":
		return busy, p, nil
	case errors.As(err, &answer) && answer.Code == "57P03": // starting up, shutting down, recovering
		return busy, p, err
	case errors.As(err, &answer) && answer.Code == "53300": // too many connections: it serves all too well
		return serving, p, nil
	default:
		return deaf, p, err
	}
}

// greet connects, makes sure that the server is the one of our data directory
// (a copied folder brings the original's pid file along), and that the
// database exists.
func (in *install) greet(ctx context.Context, socketDir string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL(socketDir, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var directory string
	var created bool
	err = conn.QueryRow(ctx, `SELECT current_setting('data_directory'), EXISTS (SELECT FROM pg_database WHERE datname = $1)`, Database).
		Scan(&directory, &created)
	if err != nil {
		return err
	}
	if !samePath(directory, in.cluster) {
		return fmt.Errorf("the server at %s works on %s", socketDir, directory)
	}
	if !created {
		// template0: nobody can be connected to it, which would be in the way.
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{Database}.Sanitize()+" TEMPLATE template0")
	}
	return err
}

// removeStale removes what a crashed server left behind. PostgreSQL does so by
// itself, except where the process id in a file now belongs to somebody else,
// or the file is empty. Its check of the shared memory remains: a server whose
// pid file is gone still keeps another one out.
func (in *install) removeStale(socketDir string) error {
	if p, ok := readPidFile(in.cluster); ok && isPostmaster(p.pid, in.cluster) {
		return nil // came up since we looked; the new one will notice and exit
	}
	var errs error
	for _, path := range []string{
		filepath.Join(in.cluster, pidFileName),
		filepath.Join(socketDir, ".s.PGSQL."+port),
		filepath.Join(socketDir, ".s.PGSQL."+port+".lock"),
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

func samePath(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
