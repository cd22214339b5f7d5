package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// helpWanted ends a command that was asked what it takes.
type helpWanted struct{ flags *flag.FlagSet }

func (helpWanted) Error() string { return flag.ErrHelp.Error() }

// usage tells of all commands.
func (a *app) usage(w io.Writer) {
	fmt.Fprint(w, "relay delivers the events of an Aksara outbox to Kafka.\n\nusage: relay [COMMAND]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.does)
		if c.args != "" {
			fmt.Fprintf(w, "  %-9s   %s\n", "", c.args)
		}
	}
	fmt.Fprint(w, `
It is configured by environment variables: relay config lists them.
relay COMMAND --help tells what a command takes, with examples.
Status: 0 done, 1 failed, 2 bad usage or configuration, 3 check or verify found a fault.
`)
}

// help tells of one command, or of what it does with its first word.
func (a *app) help(c command, flags *flag.FlagSet) {
	fmt.Fprintf(a.stdout, "usage: relay %s\n\n%s\n", strings.TrimSpace(c.name+" "+c.args), sentence(c.does))
	heading := "\nOptions"
	if flags.Name() != c.name {
		heading += " of " + flags.Name()
	}
	flags.VisitAll(func(f *flag.Flag) {
		value, meaning := flag.UnquoteUsage(f)
		fmt.Fprintf(a.stdout, "%s%-*s  %s\n", section(&heading), optionWidth, "--"+strings.TrimSpace(f.Name+" "+value), meaning)
	})
	heading = "\nExamples"
	for _, example := range c.examples {
		fmt.Fprintf(a.stdout, "%s%s\n", section(&heading), example)
	}
}

const optionWidth = len("--from-beginning")

// section is how a line of a section begins: the first one comes with the heading.
func section(heading *string) string {
	begin := "  "
	if *heading != "" {
		begin = *heading + ":\n  "
	}
	*heading = ""
	return begin
}

// sentence is a text that stands in a list as one that stands alone.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
