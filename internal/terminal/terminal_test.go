package terminal_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"outboxrelay/internal/terminal"
)

func TestColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	pseudo, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pseudo.Close()
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, c := range map[string]struct {
		out     io.Writer
		environ map[string]string
		want    string
	}{
		"terminal":         {pseudo, nil, "\x1b[31mfault\x1b[0m"},
		"no colour wanted": {pseudo, map[string]string{"NO_COLOR": "1"}, "fault"},
		"dumb terminal":    {pseudo, map[string]string{"TERM": "dumb"}, "fault"},
		"file":             {file, nil, "fault"},
		"buffer":           {&bytes.Buffer{}, nil, "fault"},
	} {
		if got := terminal.For(c.out, func(name string) string { return c.environ[name] }).Paint(terminal.Red, "fault"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
