package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"outboxrelay/internal/settings"
)

// Set by the linker where a release or an image is built.
var (
	release  = "devel"
	revision string // the commit, where the build itself can't see it
)

// config prints every variable with its effective value.
func (a *app) config(_ context.Context, args []string) error {
	if err := parse(flags("config"), args); err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "VARIABLE\tTYPE\tDEFAULT\tVALUE\tFROM")
	for _, row := range settings.Describe(s) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", row.Name, row.Type, row.Default, printable(row.Value), row.From)
	}
	return w.Flush()
}

// version prints what this program was built from.
func (a *app) version(_ context.Context, args []string) error {
	if err := parse(flags("version"), args); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "relay %s, commit %s, %s\n", release, commit(), runtime.Version())
	return err
}

// commit is the revision that the linker or the build recorded, or "unknown".
func commit() string {
	if revision != "" {
		return revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "unknown"
}

// printable quotes a text that holds what isn't printable: names and errors may hold
// escape sequences for the terminal.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
