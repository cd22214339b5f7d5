// Package pgserver starts private PostgreSQL servers from programs that are installed on this machine, for the
// demonstration, benchmarks and tests. A server listens on loopback only, trusts everybody there, and ends with us.
//
// It works as an ordinary user and, on Linux, as root: the server then runs as user postgres or nobody.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
)

const (
	// stopGrace is how long a server may take for its last checkpoint.
	stopGrace = 30 * time.Second
	// memory is where the data of throw-away servers is kept, if it is in memory: fsync=on then costs nothing.
	memory = "/dev/shm"
	// mostLog bounds what the write-ahead log takes there.
	mostLog = "max_wal_size=256MB"
)

// Options say how a server runs. The zero value is a throw-away server for tests.
type Options struct {
	// Dir holds the server's data and log, and is kept: a later server in it finds the data again. Empty means a temporary
	// folder that goes with the server.
	Dir string
	// Port to listen on; 0 takes a free one.
	Port int
	// Durable has the server write to disk as a production server does. Without it a commit is fast, and may be lost in a crash
	// unless it is made with synchronous_commit=on; a temporary folder is in memory, where there is enough.
	Durable bool
	// Settings are more of PostgreSQL's settings, each name=value; the last of the same name wins.
	Settings []string
	// Download fetches PostgreSQL's programs into the user's cache folder where none are installed.
	Download bool
}

// Server is a PostgreSQL server with the superuser postgres. Its methods must not be called concurrently, except URL, Port
// and Dir.
type Server struct {
	options Options
	bin     string // folder of the server's programs
	dir     string
	temp    *childproc.TempDir // nil when Options.Dir was given
	user    *childproc.User
	process *childproc.Process
}

// Start makes a database cluster, unless the folder has one, and returns once the server takes connections. ctx bounds the
// start only. ErrNotInstalled means that this machine has no PostgreSQL server.
func Start(ctx context.Context, options Options) (*Server, error) {
	s, err := prepare(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err = s.initialize(ctx); err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), s.Stop())
	}
	return s, nil
}

// prepare finds programs, account, folder and port.
func prepare(ctx context.Context, options Options) (*Server, error) {
	user, err := childproc.Unprivileged("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	bin, err := findPrograms(ctx, options.Download, user)
	if err != nil {
		return nil, err
	}
	if options.Port == 0 {
		ports, err := childproc.FreePorts(1)
		if err != nil {
			return nil, err
		}
		options.Port = ports[0]
	}
	s := &Server{options: options, bin: bin, user: user}
	return s, s.makeDir()
}

func (s *Server) makeDir() (err error) {
	if s.options.Dir == "" {
		var parents []string
		if !s.options.Durable && inMemory(memory) {
			parents = []string{memory}
		}
		if s.temp, err = childproc.NewTempDir("relay-postgres-", s.user, parents...); err == nil {
			s.dir = s.temp.Path
		}
		return err
	}
	if s.dir, err = filepath.Abs(s.options.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	return errors.Join(s.user.CanEnter(filepath.Dir(s.dir)), s.user.Own(s.dir))
}

// initialize makes the cluster. It is made under another name first, so that an interrupted try is never taken for one.
func (s *Server) initialize(ctx context.Context) error {
	if _, err := os.Stat(s.data()); err == nil {
		return nil
	}
	unfinished := s.data() + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	err := childproc.Run(ctx, s.command("initdb", "-D", unfinished, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"))
	if err != nil {
		return err
	}
	return os.Rename(unfinished, s.data())
}

// run starts the server on its cluster.
func (s *Server) run(ctx context.Context) (err error) {
	s.process, err = childproc.Start(s.command("postgres", s.arguments()...))
	if err != nil {
		return err
	}
	return s.process.AwaitReady(ctx, s.ping)
}

func (s *Server) arguments() []string {
	arguments := []string{"-D", s.data(), "-p", fmt.Sprint(s.options.Port)}
	settings := []string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"}
	if !s.options.Durable {
		settings = append(settings, "synchronous_commit=off", "full_page_writes=off", mostLog)
	}
	for _, setting := range append(settings, s.options.Settings...) {
		arguments = append(arguments, "-c", setting)
	}
	return arguments
}

func (s *Server) command(program string, arguments ...string) childproc.Command {
	return childproc.Command{
		Path: filepath.Join(s.bin, program),
		Args: arguments,
		Dir:  s.dir,
		// PGDATA, PGOPTIONS and the like are meant for other servers, and a locale may be unknown here.
		Env:         append(childproc.Environment("PG", "LC_", "LANG"), "LC_ALL=C"),
		Log:         filepath.Join(s.dir, "log"),
		User:        s.user,
		Temp:        s.temp,
		DeathSignal: syscall.SIGQUIT,
	}
}

func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL returns the address of a database for its superuser.
func (s *Server) URL(database string) string {
	address := url.URL{
		Scheme:   "postgres",
		User:     url.User("postgres"),
		Host:     childproc.Loopback(s.options.Port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return address.String()
}

// Port returns the server's port, which stays the same over Restart.
func (s *Server) Port() int { return s.options.Port }

// Dir returns the folder that holds the server's data and log.
func (s *Server) Dir() string { return s.dir }

// Stop ends the server in an orderly way, cutting connections, and removes a temporary folder. Calling it again does
// nothing.
func (s *Server) Stop() error {
	err := s.halt(syscall.SIGINT)
	if s.temp != nil {
		err = errors.Join(err, s.temp.Remove())
		s.temp = nil
	}
	return err
}

// Kill ends the server as a crash does: connections are cut and nothing is tidied up, so the next start has to recover.
// The folder stays.
func (s *Server) Kill() error { return s.halt(syscall.SIGQUIT) }

// Restart stops the server, unless Kill has, and starts it again on the same data and port.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.halt(syscall.SIGINT); err != nil {
		return fmt.Errorf("restart PostgreSQL: %w", err)
	}
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("restart PostgreSQL: %w", err)
	}
	return nil
}

func (s *Server) halt(signal syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	err := s.process.Stop(signal, stopGrace)
	s.process = nil
	return err
}
