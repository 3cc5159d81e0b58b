// Package localpg runs a PostgreSQL server of our own on a folder, so that a
// fresh machine needs no database to be set up.
//
// Every process that calls [Start] on the same folder shares one server. The
// first one in initialises and starts it, the last one out stops it. The
// server listens on a private unix socket only, never on TCP.
//
// The folder holds:
//
//	start.lock    held exclusively while the server is started or stopped
//	use.lock      held shared by every process that uses the server
//	pg/           the PostgreSQL data directory
//	run/          the socket (elsewhere if this path is too long for one)
//	postgres.log  what the server had to say
//
// The server outlives a user that is killed: the next one finds it running and
// shares it, see ensure.go. A server that dies under its users is brought back
// by them, see watch.go.
package localpg

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
)

// Database is the name of the database that exists after the first start.
const Database = "countersign"

const (
	superuser = "postgres"
	port      = "5432" // only the name of the socket file; no TCP port is opened
)

// Config says where the server lives and how it is run.
type Config struct {
	// DataDir holds everything of this server. It is created with mode 0700.
	DataDir string
	// BinDir is the folder with initdb and postgres; empty means [Find].
	BinDir string
	// Settings are extra server settings (-c name=value). They count only for
	// the process that starts the server, not for those that find it running.
	Settings map[string]string
	// Logger tells about starts and stops; nil discards.
	Logger *slog.Logger
}

// Server is one user's hold on the shared server. It is safe for concurrent use.
type Server struct {
	in        *install
	socketDir string
	use       *lockFile

	stopWatch context.CancelFunc
	watched   chan struct{} // closed when the watch has ended

	close    sync.Once
	closeErr error
}

// Start makes sure that a PostgreSQL server runs on cfg.DataDir and counts the
// caller among its users until [Server.Close].
//
// ctx limits the start, not the life of the server. Recovery after a crash may
// take a while; give up by cancelling ctx.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	in, err := open(cfg)
	if err != nil {
		return nil, err
	}
	s, err := in.join(ctx)
	if err != nil {
		return nil, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stopWatch, s.watched = stop, make(chan struct{})
	go s.watch(watch)
	return s, nil
}

// URL is the address of the database "countersign", as user postgres over the
// private unix socket.
func (s *Server) URL() string { return s.DatabaseURL(Database) }

// DatabaseURL is the address of another database of the same server.
func (s *Server) DatabaseURL(name string) string { return databaseURL(s.socketDir, name) }

// Close leaves. The last one out stops the server, rolling back what is still
// in progress, and returns when it has stopped. Further calls do nothing and
// return the first one's result.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.stopWatch()
		<-s.watched
		s.closeErr = s.in.leave(s.use)
	})
	return s.closeErr
}

func databaseURL(socketDir, name string) string {
	query := url.Values{"host": {socketDir}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{
		Scheme: "postgres",
		User:   url.User(superuser),
		Path:   "/" + name,
		// libpq reads "+" as a plus, not as a space.
		RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20"),
	}
	return u.String()
}
