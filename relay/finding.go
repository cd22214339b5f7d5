package relay

import "fmt"

// Finding is one answer to the question whether a configuration would work.
type Finding struct {
	Check string // what was looked at, in a few words, the same each time
	Level Level
	Seen  string // what was found
	Do    string // what to do about it; "" if nothing
}

// Level is how bad a [Finding] is.
type Level uint8

const (
	// OK: as it should be.
	OK Level = iota
	// Warn: it works, but weaker than it could.
	Warn
	// Fail: nothing can be read or sent until it is mended.
	Fail
)

// String is the level as the check command prints it.
func (l Level) String() string { return [...]string{"ok", "warn", "fail"}[l] }

// Count is a number of things, for a text that people read.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
