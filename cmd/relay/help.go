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
	title := "Options"
	if flags.Name() != c.name {
		title += " of " + flags.Name()
	}
	var options []string
	flags.VisitAll(func(f *flag.Flag) {
		value, meaning := flag.UnquoteUsage(f)
		options = append(options, fmt.Sprintf("%-*s  %s", len("--from-beginning"), "--"+strings.TrimSpace(f.Name+" "+value), meaning))
	})
	a.list(title, options)
	a.list("Examples", c.examples)
}

// list prints lines under a title, and nothing if there are none.
func (a *app) list(title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(a.stdout, "\n%s:\n  %s\n", title, strings.Join(lines, "\n  "))
	}
}

// sentence is a text that stands in a list as one that stands alone.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
