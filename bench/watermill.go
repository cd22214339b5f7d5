package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
)

// watermillBatch is how many rows Watermill's subscriber takes with one query. Its default is 100, but a query costs
// more the longer the table is, so that few of them are better for a backlog. A crash then sends as many again.
const watermillBatch = 10_000

// prepareWatermill builds the program that peers/watermill has, which is a module of its own.
func (s *stage) prepareWatermill(ctx context.Context) error {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "outboxrelay").Output()
	if err != nil {
		return fmt.Errorf("find the module (run this in its folder): %w", err)
	}
	s.watermill = filepath.Join(s.dir.Path, "watermill")
	build := exec.CommandContext(ctx, "go", "build", "-o", s.watermill, ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(module)), "bench", "peers", "watermill")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build it (its modules must be reachable by go's proxy, see go env GOPROXY): %w\n%s", err, output)
	}
	return nil
}

// runWatermill has Watermill's forwarder send the same payloads from a table of its own.
func (s *stage) runWatermill(ctx context.Context, d database, t topic) (went drained, err error) {
	if err := d.fillWatermill(ctx, t); err != nil {
		return went, err
	}
	return s.runPeer(ctx, peer{
		command: s.watermillCommand("forward", "-database", d.url(peerRole), "-brokers", strings.Join(s.kafka.Addrs(), ","),
			"-batch", fmt.Sprint(watermillBatch)),
		health: func(context.Context) error { return nil }, // it ends when it fails
		marked: d.watermillMarked,
	}, t)
}

// fillWatermill copies the outbox to Watermill's table, whose rows name the topic that they are for.
func (d database) fillWatermill(ctx context.Context, t topic) error {
	err := d.stage.execute(ctx, d.name, `grant create on schema public to `+peerRole,
		`grant select on aksara_operation_outbox to `+peerRole)
	if err != nil {
		return err
	}
	if err := childproc.Run(ctx, d.stage.watermillCommand("fill", "-database", d.url(peerRole), "-topic", t.name)); err != nil {
		return err
	}
	return d.stage.execute(ctx, d.name, `vacuum analyze`, `checkpoint`)
}

func (s *stage) watermillCommand(arguments ...string) childproc.Command {
	return childproc.Command{
		Path: s.watermill, Args: arguments, Dir: s.dir.Path,
		Env: childproc.Environment("PG"), Log: filepath.Join(s.dir.Path, "watermill.log"), Temp: s.dir,
	}
}

// watermillMarked fails unless the table says that its last row is sent.
func (d database) watermillMarked(ctx context.Context) (err error) {
	var marked bool
	err = d.stage.connected(ctx, d.name, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select (select offset_acked from watermill_offsets_events)
			= (select max("offset") from watermill_events)`).Scan(&marked)
	})
	if err == nil && !marked {
		err = errors.New("the last row is not marked")
	}
	return err
}

// watermillVersions tells which of Watermill's modules a program was built with, and which Kafka client.
func watermillVersions(info *buildinfo.BuildInfo) string {
	var all []string
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "github.com/ThreeDotsLabs/") || m.Path == "github.com/IBM/sarama" {
			all = append(all, strings.Split(m.Path, "/")[2]+" "+m.Version)
		}
	}
	return strings.Join(all, ", ")
}
