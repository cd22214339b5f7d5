// Package terminal gives colour to what people read, and only to that.
package terminal

import (
	"io"
	"os"
)

// Colour is how a text looks, as the parameters of ECMA-48's SGR.
type Colour string

// What is used of them.
const (
	Plain  Colour = "0"
	Bold   Colour = "1"
	Dim    Colour = "2"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Blue   Colour = "34"
	Cyan   Colour = "36"
)

// Brush paints texts, or leaves them as they are. The zero Brush does the latter.
type Brush struct{ paints bool }

// For is the brush for an output: it paints if that is a terminal, unless NO_COLOR (no-color.org) is set or TERM is dumb.
func For(out io.Writer, getenv func(string) string) Brush {
	file, ok := out.(*os.File)
	if !ok || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return Brush{}
	}
	info, err := file.Stat()
	return Brush{err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// Paint gives a text a colour.
func (b Brush) Paint(c Colour, text string) string {
	if !b.paints {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
