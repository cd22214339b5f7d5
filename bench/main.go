// Command bench measures the relay on a PostgreSQL and a Kafka of its own, and prints the figures as Markdown: how fast
// it drains a backlog, beside simpler ways of doing so and, with -peers, beside what others have made; what a claim costs
// when little and when much is pending; how several relays share a database; how long an event takes from its commit to a
// consumer; how long writers wait while a backlog is drained; what a row costs when much more lies in the table; and what it
// takes to verify what was exported.
//
// The relay is run as a program, with its default settings. Variables that begin with RELAY_ are handed on to it, so that
// a setting can be tried: RELAY_WORKERS=8 go run ./bench -only drain. It runs on Linux, whose /proc it reads.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Exit statuses.
const (
	statusDone   = 0
	statusFailed = 1
	statusUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// scenario is one kind of measurement. It prints its table, and returns what the targets ask for.
type scenario struct {
	name    string
	measure func(context.Context, *stage) ([]target, error)
}

var scenarios = []scenario{
	{"drain", drain},
	{"claim", claimCost},
	{"relays", severalRelays},
	{"latency", latency},
	{"exactly-once", exactlyOnce},
	{"writers", writers},
	{"backlogs", backlogs},
	{"verify", verifyExport},
}

// options are the command line.
type options struct {
	sizes
	only string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	quick, peers, runs := false, false, 0
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&quick, "quick", false, "small sizes: shows that everything runs, the figures mean nothing")
	flags.BoolVar(&peers, "peers", false, "drain also by Debezium and by Watermill's forwarder, write also beside Debezium; they are downloaded")
	flags.IntVar(&runs, "runs", 0, "how often each figure is taken, for medians (default 3, with -quick 1)")
	flags.StringVar(&o.only, "only", "", "measure only one of: "+strings.Join(names(), ", "))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.sizes = full
	if quick {
		o.sizes = small
	}
	o.peers = peers
	if runs != 0 {
		o.runs = runs
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.runs < 1:
		err = errors.New("-runs must be 1 or more")
	case o.only != "" && !slices.Contains(names(), o.only):
		err = fmt.Errorf("-only %q: there are %s", o.only, strings.Join(names(), ", "))
	case o.peers && o.only != "" && o.only != "drain" && o.only != "writers":
		err = fmt.Errorf("-peers is about drain and writers, and -only %s leaves them out", o.only)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	return o, err
}

func names() (all []string) {
	for _, s := range scenarios {
		all = append(all, s.name)
	}
	return all
}

// run measures and gives the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return statusDone
	case err != nil:
		return statusUsage
	}
	if err := measure(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return statusFailed
	}
	return statusDone
}

// measure sets the stage, runs the scenarios, and clears everything away, however it ends.
func measure(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	s, err := newStage(ctx, o.sizes, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.introduce(ctx); err != nil {
		return err
	}
	var targets []target
	for _, scenario := range scenarios {
		if o.only != "" && o.only != scenario.name {
			continue
		}
		some, err := scenario.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", scenario.name, err)
		}
		targets = append(targets, some...)
	}
	if !o.quick {
		printTargets(stdout, targets)
	}
	return nil
}
