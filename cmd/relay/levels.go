package main

import (
	"strings"

	"outboxrelay/internal/terminal"
)

// levelColours are those of the words that findings begin with.
var levelColours = map[string]terminal.Colour{
	"ok": terminal.Green, "info": terminal.Dim, "warn": terminal.Yellow, "fail": terminal.Red, "fault": terminal.Red,
}

// levels gives such a word as the beginning of a line, in its colour on a terminal.
func (a *app) levels(width int) func(word string) string {
	brush := terminal.For(a.stdout, a.getenv)
	return func(word string) string {
		return brush.Paint(levelColours[word], word) + strings.Repeat(" ", max(0, width-len(word)))
	}
}

func (a *app) getenv(name string) (value string) {
	for _, entry := range a.environ {
		if key, is, _ := strings.Cut(entry, "="); key == name {
			value = is
		}
	}
	return value
}
