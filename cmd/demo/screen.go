package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"outboxrelay/internal/terminal"
)

// The kinds of line that happenings are shown as.
const (
	ready     = "ready"
	written   = "written"
	claimed   = "claimed"
	delivered = "delivered"
	exported  = "exported"
	refused   = "refused"
	released  = "released"
	held      = "held back"
	killed    = "killed"
	duplicate = "duplicate"
)

func colourOf(kind string) terminal.Colour {
	switch kind {
	case written:
		return terminal.Blue
	case claimed, duplicate, held:
		return terminal.Yellow
	case delivered, ready:
		return terminal.Green
	case exported:
		return terminal.Cyan
	case refused, killed:
		return terminal.Red
	default:
		return terminal.Plain
	}
}

// screen shows the story, with the time since its start before each line. It is safe for concurrent use.
type screen struct {
	start time.Time
	brush terminal.Brush

	mu  sync.Mutex
	out io.Writer
}

func newScreen(out io.Writer) *screen {
	return &screen{start: time.Now(), brush: terminal.For(out, os.Getenv), out: out}
}

// act announces a part of the story: a headline, and what there is to see.
func (s *screen) act(headline, text string) {
	s.print("\n%s\n%s\n\n", s.brush.Paint(terminal.Bold, headline), indent(text))
}

// note says something between the happenings.
func (s *screen) note(format string, args ...any) {
	s.print("%s\n", s.brush.Paint(terminal.Dim, indent(fmt.Sprintf(format, args...))))
}

// happened shows one happening. who is a tenant, or empty.
func (s *screen) happened(kind, who, format string, args ...any) {
	s.print("%s  %s  %-4s %s\n", s.brush.Paint(terminal.Dim, fmt.Sprintf("%7.2f s", time.Since(s.start).Seconds())),
		s.brush.Paint(colourOf(kind), fmt.Sprintf("%-9s", kind)), who, fmt.Sprintf(format, args...))
}

func (s *screen) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}

// indent puts text under the happenings.
func indent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "           " + line
		}
	}
	return strings.Join(lines, "\n")
}

// since is a duration for people.
func since(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
