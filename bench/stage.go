package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/pgserver"
)

// postgresSettings are those of a small production server. Everything else is as PostgreSQL ships it, except that Debezium
// can't read the log without one more.
func (s *stage) postgresSettings() []string {
	settings := []string{"shared_buffers=4GB", "max_wal_size=4GB"}
	if s.peers {
		settings = append(settings, "wal_level=logical")
	}
	return settings
}

// stage is what all measurements run on.
type stage struct {
	sizes
	out, progress io.Writer

	dir      *childproc.TempDir
	program  string // the relay
	postgres *pgserver.Server
	kafka    *kafkaserver.Cluster
	admin    *kadm.Client

	postgresPID, kafkaPID int

	// What others have made, if it is measured.
	java      string // the program
	debezium  string // folder of the jars
	watermill string // the program

	named int // how many things newName has named
}

// newStage builds the relay and starts the servers. Close it after use.
func newStage(ctx context.Context, sizes sizes, out, progress io.Writer) (s *stage, err error) {
	s = &stage{sizes: sizes, out: out, progress: progress}
	if err := s.set(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) set(ctx context.Context) (err error) {
	s.note("building the relay, starting PostgreSQL and Kafka")
	if s.dir, err = childproc.NewTempDir("relay-bench-", nil); err != nil {
		return err
	}
	s.program = filepath.Join(s.dir.Path, "relay")
	output, err := exec.CommandContext(ctx, "go", "build", "-o", s.program, "outboxrelay/cmd/relay").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the relay (run this in the module's folder): %w\n%s", err, output)
	}
	if s.peers {
		if err := s.preparePeers(ctx); err != nil {
			return err
		}
	}
	if s.postgres, err = pgserver.Start(ctx, pgserver.Options{Durable: true, Settings: s.postgresSettings()}); err != nil {
		return err
	}
	if s.postgresPID, err = childNamed("postgres"); err != nil {
		return err
	}
	if err := s.makeRoles(ctx); err != nil {
		return err
	}
	if s.kafka, err = kafkaserver.Start(ctx, kafkaserver.Options{Throughput: true}); err != nil {
		return err
	}
	if s.kafkaPID, err = childNamed("java"); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addrs()...), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	s.admin = kadm.NewClient(client)
	return nil
}

func (s *stage) close() (err error) {
	if s.admin != nil {
		s.admin.Close()
	}
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Close())
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Stop())
	}
	if s.dir != nil {
		err = errors.Join(err, s.dir.Remove())
	}
	return err
}

// note tells whoever waits what is going on.
func (s *stage) note(format string, args ...any) {
	fmt.Fprintf(s.progress, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// poll calls done every 20 ms until it returns nil. It gives up with done's last error.
func poll(ctx context.Context, patience time.Duration, done func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("given up after %s: %w", patience, err)
		case <-ticker.C:
		}
	}
}
