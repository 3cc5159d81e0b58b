package localpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	watchConnect = 10 * time.Second // for a connection to watch
	watchRetry   = time.Second      // after a failure to bring the server back
)

// watch brings the server back when it dies under its users, killed or stopped
// by somebody else. It holds one idle connection: that this ends tells the end
// of the server at once, whoever started it.
func (s *Server) watch(ctx context.Context) {
	defer close(s.watched)
	for {
		s.in.untilGone(ctx, s.socketDir)
		if ctx.Err() != nil {
			return
		}
		if err := s.in.bringBack(ctx); err != nil && ctx.Err() == nil {
			s.in.log.ErrorContext(ctx, "PostgreSQL is gone and does not come back", "dir", s.in.dir, "error", err)
			pause(ctx, watchRetry)
		}
	}
}

// untilGone returns when the connection to the server ends, or none is to be had.
func (in *install) untilGone(ctx context.Context, socketDir string) {
	config, err := pgx.ParseConfig(databaseURL(socketDir, "postgres"))
	if err != nil {
		return
	}
	config.RuntimeParams["application_name"] = "countersign watch"
	config.RuntimeParams["idle_session_timeout"] = "0"
	config.ConnectTimeout = watchConnect
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return
	}
	conn.WaitForNotification(ctx) // none ever comes
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	conn.Close(ctx)
}

// bringBack is what Start does, for one who is a user already.
func (in *install) bringBack(ctx context.Context) error {
	start, err := in.lockStart(ctx)
	if err != nil {
		return err
	}
	defer start.release()
	_, err = in.ensure(ctx)
	return err
}
