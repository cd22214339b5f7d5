package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
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

// Colours, as terminals take them.
const (
	plain  = "0"
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	cyan   = "36"
)

func colourOf(kind string) string {
	switch kind {
	case written:
		return blue
	case claimed, duplicate, held:
		return yellow
	case delivered, ready:
		return green
	case exported:
		return cyan
	case refused, killed:
		return red
	default:
		return plain
	}
}

// screen shows the story, with the time since its start before each line. It is safe for concurrent use.
type screen struct {
	start  time.Time
	colour bool

	mu  sync.Mutex
	out io.Writer
}

// newScreen uses colours on a terminal only, and not where NO_COLOR asks for none.
func newScreen(out io.Writer) *screen {
	colour := false
	if file, ok := out.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		info, err := file.Stat()
		colour = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return &screen{start: time.Now(), colour: colour, out: out}
}

// act announces a part of the story: a headline, and what there is to see.
func (s *screen) act(headline, text string) {
	s.print("\n%s\n%s\n\n", s.paint(bold, headline), indent(text))
}

// note says something between the happenings.
func (s *screen) note(format string, args ...any) {
	s.print("%s\n", s.paint(dim, indent(fmt.Sprintf(format, args...))))
}

// happened shows one happening. who is a tenant, or empty.
func (s *screen) happened(kind, who, format string, args ...any) {
	s.print("%s  %s  %-4s %s\n", s.paint(dim, fmt.Sprintf("%7.2f s", time.Since(s.start).Seconds())),
		s.paint(colourOf(kind), fmt.Sprintf("%-9s", kind)), who, fmt.Sprintf(format, args...))
}

func (s *screen) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}

func (s *screen) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
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
