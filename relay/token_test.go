package relay

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestToken(t *testing.T) {
	t.Parallel()
	for _, worker := range []string{"", "host-1", "a/b", strings.Repeat("ä", 300), "bad \xff"} {
		token := newToken(worker)
		if n := utf8.RuneCountInString(token); n > 255 || !utf8.ValidString(token) {
			t.Errorf("token of %.20q has %d characters and does not fit the column", worker, n)
		}
		if !isToken(token) {
			t.Errorf("%q is not taken for a token", token)
		}
		if token == newToken(worker) {
			t.Errorf("two tokens of %.20q are the same", worker)
		}
	}
	if token := newToken("host-1"); !strings.HasPrefix(token, "host-1/") {
		t.Errorf("token %q does not begin with the worker's id", token)
	}
	for _, behind := range []string{"", "!", "!!!!!!"} {
		token := newToken(strings.Repeat("ä", 300)) + behind
		if n := utf8.RuneCountInString(token); n > 255 || Marks(token) != len(behind) || Unmarked(token)+behind != token {
			t.Errorf("token %.20q... with %q: %d characters, %d marks", token, behind, n, Marks(token))
		}
	}
	if n := Marks("python!!!"); n != 0 {
		t.Errorf("another exporter's claim stands for %d attempts", n)
	}
	for _, other := range []string{"", "python-worker", "host/1234", "host/0123456789abcdeg", "host-0123456789abcdef"} {
		if isToken(other) {
			t.Errorf("%q is taken for a token", other)
		}
	}
}
