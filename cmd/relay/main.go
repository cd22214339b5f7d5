// Command relay delivers the events of an Aksara outbox to Kafka. It is configured by
// environment variables; "relay --help" lists its commands.
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
	_ "time/tzdata" // so that TZ works in an image that holds nothing else

	"github.com/KimMachineGun/automemlimit/memlimit"

	"outboxrelay/internal/settings"
	"outboxrelay/relay"
)

// Exit statuses.
const (
	statusDone  = 0
	statusError = 1 // it failed at run time
	statusUsage = 2 // bad usage or configuration
	statusFault = 3 // check or verify found a fault
)

func main() {
	limitMemory(memlimit.FromCgroup)
	ctx, stop := untilSignal(context.Background())
	hostname, _ := os.Hostname() // without one the settings say what to set instead
	a := &app{environ: os.Environ(), hostname: hostname, stdout: os.Stdout, stderr: os.Stderr}
	status := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// untilSignal ends the context at the first SIGTERM or SIGINT; a second one ends the
// process.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(statusError)
	}()
	return ctx, cancel
}

// app is the program without its process: what a command may touch of the outside.
type app struct {
	environ        []string
	hostname       string
	stdout, stderr io.Writer

	passwordFrom string // the variable that gave the database's password, once the settings are loaded
}

// command is one thing that the program does.
type command struct {
	name, args, does string
	examples         []string
	run              func(a *app, ctx context.Context, args []string) error
}

// reporting is how commands begin that only take --json.
func (a *app) reporting(name string, args []string) (s *settings.Settings, asJSON bool, err error) {
	set := flags(name)
	set.BoolVar(&asJSON, "json", false, jsonMeans)
	if err := parse(set, args); err != nil {
		return nil, false, err
	}
	s, err = a.settings()
	return s, asJSON, err
}

func commands() []command {
	return []command{
		{"run", "", "relay until SIGTERM or SIGINT (the default)", []string{
			"relay",
		}, (*app).relay},
		{"once", "(--tenant ID | --non-tenant) [--max N]", "export at most N events of one scope", []string{
			"relay once --tenant acme",
			"relay once --non-tenant --max 100",
		}, (*app).once},
		{"check", "[--json]", "tell whether this configuration would work", []string{
			"relay check",
			"relay check --json",
		}, (*app).check},
		{"migrate", "[--standalone] [--grant-to ROLE] [--ledger] [--dry-run]", "add the relay's supporting objects to the database; the ledger's topic", []string{
			"relay migrate --dry-run",
			"relay migrate --grant-to relay",
		}, (*app).migrate},
		{"status", "[--json]", "count the waiting events of each scope", []string{
			"relay status",
			"relay status --json",
		}, (*app).status},
		{"parked", parkedArgs, "look at events that can't be sent, send them again, or give them up", []string{
			"relay parked list",
			"relay parked show 4711 --tenant acme",
			"relay parked retry --all --tenant acme",
			"relay parked discard 4711 --tenant acme --reason too-large-for-the-topic",
		}, (*app).parked},
		{"ledger", ledgerArgs, "in exactly-once mode: look at claims, and settle those of which nobody knows what was committed", []string{
			"relay ledger list",
			"relay ledger release orders-0-3#0123456789abcdef --may-duplicate",
		}, (*app).ledger},
		{"verify", "[--json]", "compare topics and table: lost, repeated, out of order, crossed", []string{
			"relay verify",
			"relay verify --json",
		}, (*app).verify},
		{"tail", "[--from-beginning] [--max N]", "print the topic's events as JSON lines", []string{
			"relay tail",
			"relay tail --from-beginning --max 10",
		}, (*app).tail},
		{"healthy", "", "ask the relay that runs here whether it is alive, for a container's health check", nil, (*app).healthy},
		{"config", "", "print every variable with its effective value", []string{
			"relay config",
		}, (*app).config},
		{"version", "", "print version, commit and Go version", nil, (*app).version},
	}
}

// run executes one command line and gives the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	name, args := "run", args
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if name == "help" || name == "--help" || name == "-h" {
		a.usage(a.stdout)
		return statusDone
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == name })
	if i < 0 {
		fmt.Fprintf(a.stderr, "relay: there is no command %q\n", name)
		a.usage(a.stderr)
		return statusUsage
	}
	return a.conclude(commands()[i], commands()[i].run(a, ctx, args))
}

// conclude tells of a command's error and turns it into a status.
func (a *app) conclude(c command, err error) int {
	var help helpWanted
	var usage usageError
	var faults settings.Faults
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &help):
		a.help(c, help.flags)
		return statusDone
	case errors.Is(err, errSilent):
		return statusError
	case errors.Is(err, errFaultFound):
		return statusFault
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "relay %s: %s\nusage: relay %s\n", c.name, printable(err.Error()), strings.TrimSpace(c.name+" "+c.args))
		return statusUsage
	case errors.As(err, &faults):
		fmt.Fprintf(a.stderr, "relay: the configuration has %s:\n", relay.Count(len(faults), "fault", "faults"))
		for _, f := range faults {
			fmt.Fprintf(a.stderr, "  %s\n", printable(f.Error()))
		}
		return statusUsage
	default:
		for line := range strings.Lines(told(err, a.passwordFrom).Error()) {
			fmt.Fprintf(a.stderr, "relay %s: %s\n", c.name, printable(strings.TrimSuffix(line, "\n")))
		}
		return statusError
	}
}

// usageError is a command line that the program does not understand, or a scope that
// isn't configured.
type usageError string

func (e usageError) Error() string { return string(e) }

var (
	// errSilent ends a command with status 1 after it has said everything itself.
	errSilent = errors.New("failed")
	// errFaultFound ends a command with status 3 after it has said everything itself.
	errFaultFound = errors.New("faults were found")
)

// parse reads a command's flags. Whatever is left over is an error.
func parse(flags *flag.FlagSet, args []string) error {
	words, err := parseMixed(flags, args)
	if err == nil && len(words) > 0 {
		return usageError(fmt.Sprintf("unexpected argument %q", words[0]))
	}
	return err
}

// parseMixed reads flags and the other words that stand among them.
func parseMixed(set *flag.FlagSet, args []string) (words []string, err error) {
	set.SetOutput(io.Discard)
	for {
		switch err := set.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, helpWanted{set}
		case err != nil:
			return nil, misused(set, err)
		case set.NArg() == 0:
			return words, nil
		}
		words, args = append(words, set.Arg(0)), set.Args()[1:]
	}
}

// misused is what the flag package says of a command line, and of an option that isn't there what may have been meant.
func misused(set *flag.FlagSet, err error) usageError {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return usageError(err.Error())
	}
	var names []string
	set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	meant := ""
	if near := settings.Nearest(name, names); near != "" {
		meant = " (did you mean --" + near + "?)"
	}
	return usageError(fmt.Sprintf("there is no option --%s%s; see relay %s --help", name, meant, set.Name()))
}

const jsonMeans = "for machines: JSON"

// flags is an empty set of flags for a command.
func flags(name string) *flag.FlagSet { return flag.NewFlagSet(name, flag.ContinueOnError) }

// settings loads the configuration, in which variables that are optional to a command
// need not be set.
func (a *app) settings(optional ...string) (*settings.Settings, error) {
	s, err := settings.Load(a.environ, os.ReadFile, a.hostname, optional...)
	if err == nil {
		a.passwordFrom = s.Database.Password.From()
	}
	return s, err
}
