// Command chaos runs relays on a real PostgreSQL and three real Kafka brokers while an application writes, breaks all of
// them again and again by a schedule drawn from a seed, and then judges from the tables and the topic alone whether every
// committed transition was delivered, and in order. It prints what it found as Markdown, and exits with 1 if a promise was
// broken.
//
//	go run ./chaos -duration 2m -seed 7
//
// The same seed draws the same faults at the same times; what exactly they hit differs from run to run. It needs
// PostgreSQL's programs, Java and Maven, and runs on Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"outboxrelay/internal/moments"
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

// options are the command line.
type options struct {
	duration time.Duration // of the faults
	drain    time.Duration // how long relays may take afterwards
	seed     uint64
	relays   int
	rate     int // transitions a second
	pace     pace
	race     bool
	logs     string
	delivery string
	without  string // the name of a mutation, "" for none
}

// exactly is the value of RELAY_DELIVERY in which nothing may come twice.
const exactly = "exactly-once"

// instants are the moments at which relays are killed.
func (o options) instants() []moments.Moment {
	if o.delivery == exactly {
		return moments.Transactions()
	}
	return moments.All()
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.duration, "duration", 2*time.Minute, "for how long faults begin")
	flags.DurationVar(&o.drain, "drain", 3*time.Minute, "how long the relays may take for the rest, when nothing fails any more")
	flags.Uint64Var(&o.seed, "seed", 0, "of the schedule; 0 draws one")
	flags.IntVar(&o.relays, "relays", 3, "how many relays, 2 to 4; the first two share a worker id")
	flags.IntVar(&o.rate, "rate", 100, "transitions that the application writes a second")
	flags.DurationVar(&o.pace.relays, "relay-every", 3*time.Second, "mean time between two faults of relays")
	flags.DurationVar(&o.pace.servers, "server-every", 8*time.Second, "mean time between two faults of servers and networks")
	flags.BoolVar(&o.race, "race", false, "build the relay with the race detector")
	flags.StringVar(&o.delivery, "delivery", "at-least-once", "the relays' RELAY_DELIVERY: at-least-once or exactly-once")
	flags.StringVar(&o.without, "without", "", "take steps of exactly-once mode out: fence or look-up, and the test must fail; or clock, what fence takes out besides, and it must not")
	flags.StringVar(&o.logs, "logs", "", "folder to keep the relays' logs in")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.relays < 2 || o.relays > 4:
		err = errors.New("-relays must be 2 to 4")
	case o.delivery != "at-least-once" && o.delivery != exactly:
		err = errors.New("-delivery must be at-least-once or exactly-once")
	case o.without != "" && (mutations[o.without] == nil || o.delivery != exactly):
		err = errors.New("-without must be fence, look-up or clock, and goes with -delivery exactly-once")
	case o.rate < 1 || o.duration < time.Second || o.drain < time.Second:
		err = errors.New("-rate, -duration and -drain must be positive, the latter two at least 1s")
	case o.pace.relays < 100*time.Millisecond || o.pace.servers < 100*time.Millisecond:
		err = errors.New("-relay-every and -server-every must be at least 100ms")
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000) + 1
	}
	return o, err
}

// run gives the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return statusDone
	case err != nil:
		return statusUsage
	}
	fmt.Fprintf(stdout, "seed %d\n", o.seed)
	if err := test(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "chaos: %v\nchaos: the seed was %d\n", err, o.seed)
		return statusFailed
	}
	return statusDone
}

// test sets the stage, breaks things, judges, and clears everything away, however it ends.
func test(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	s, err := newStage(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	h, err := s.play(ctx, draw(o.seed, o.duration, o.pace, o.relays, o.instants()))
	if err != nil {
		return err
	}
	found, err := s.judge(ctx, h)
	if err != nil {
		return err
	}
	s.report(stdout, h, found)
	return found.err()
}
