// Command watermill is Watermill's outbox as its documentation builds it: a table that its SQL publisher writes, and its
// forwarder, which sends what is in there to Kafka. The benchmark measures the relay beside it. It is a module of its
// own, so that nothing of it is among the relay's dependencies.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// source is Watermill's name of the stream between publisher and forwarder, and so part of its tables' names.
const source = "events"

// options are the command line.
type options struct {
	database string   // address
	topic    string   // fill: of Kafka, where the events are to go
	brokers  []string // forward
	batch    int      // forward: how many rows one query takes
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "watermill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	command, o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if command == "fill" {
		return fill(ctx, o)
	}
	return forward(ctx, o)
}

func parse(args []string, stderr io.Writer) (command string, o options, err error) {
	if len(args) == 0 || args[0] != "fill" && args[0] != "forward" {
		return "", o, fmt.Errorf("what to do: fill or forward")
	}
	command = args[0]
	flags := flag.NewFlagSet("watermill "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.database, "database", "", "the database's address")
	var brokers string
	if command == "fill" {
		flags.StringVar(&o.topic, "topic", "", "Kafka's topic")
	} else {
		flags.StringVar(&brokers, "brokers", "", "Kafka's brokers, with commas between")
		flags.IntVar(&o.batch, "batch", 100, "how many rows one query takes")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return "", o, err
	}
	o.brokers = strings.Split(brokers, ",")
	if flags.NArg() > 0 {
		return "", o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return command, o, nil
}
