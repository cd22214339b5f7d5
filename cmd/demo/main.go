// Command demo shows the relay at work to somebody who has never seen it: it starts a PostgreSQL server and Kafka brokers
// of its own, writes transitions as an application does, runs the relay program against them, and tells what happens as it
// happens. At the end it checks that everything arrived as promised. It leaves nothing behind.
//
// The relay is run as a program, by its environment variables, so that what is seen here holds for an installation too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses.
const (
	statusDone        = 0
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130 // what a shell reports for a program that Ctrl-C ended
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// Values of RELAY_DELIVERY.
const (
	atLeastOnce = "at-least-once"
	exactlyOnce = "exactly-once"
)

// options are the command line.
type options struct {
	keep  bool   // stay up after the story
	relay string // path of the relay program; empty: build it
	once  bool   // the relay works in exactly-once mode
}

// run tells the whole story and gives the exit status. The first signal ends it in an orderly way, a second one at once.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.keep, "keep", false, "stay up afterwards, for playing with psql and kcat")
	flags.StringVar(&o.relay, "relay", "", "the relay program to run (default: build it from this module)")
	delivery := flags.String("delivery", atLeastOnce, "the relay's RELAY_DELIVERY: "+atLeastOnce+" or "+exactlyOnce)
	err := flags.Parse(args)
	o.once = *delivery == exactlyOnce
	switch {
	case errors.Is(err, flag.ErrHelp):
		return statusDone
	case err != nil || flags.NArg() > 0 || !o.once && *delivery != atLeastOnce:
		fmt.Fprintln(stderr, "usage: demo [-keep] [-relay PROGRAM] [-delivery at-least-once|exactly-once]")
		return statusUsage
	}

	ctx, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer restore()
	context.AfterFunc(ctx, restore)
	err, leftover := play(ctx, o, newScreen(stdout))
	switch {
	case leftover != nil:
		fmt.Fprintf(stderr, "\ndemo: %v\n", errors.Join(err, fmt.Errorf("clear away: %w", leftover)))
		return statusFailed
	case err == nil:
		return statusDone
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "\ndemo: interrupted; its servers are stopped and its folders removed")
		return statusInterrupted
	default:
		fmt.Fprintf(stderr, "\ndemo: %v\n", err)
		return statusFailed
	}
}

// play sets the stage, tells the story, and clears everything away, however it ends.
func play(ctx context.Context, o options, out *screen) (err, leftover error) {
	story, fail := context.WithCancelCause(ctx)
	d := &demo{options: o, screen: out, fail: fail}
	defer func() {
		fail(nil)
		leftover = d.close()
	}()
	if err := d.prepare(story); err != nil {
		return err, nil
	}
	if err := d.tell(story); err != nil {
		return err, nil
	}
	if !o.keep {
		d.howToGoOn()
	} else if err := d.stayUp(story); ctx.Err() == nil {
		return err, nil // not the user ended it
	}
	return d.relay.stop(), nil
}
