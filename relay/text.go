package relay

import (
	"strings"
	"unicode/utf8"
)

// maxErrorChars is what last_error holds: characters, not bytes.
const maxErrorChars = 2000

// StoredText makes a text fit for the last_error column: valid UTF-8 without NUL, at
// most 2,000 characters. What it replaces becomes U+FFFD, what is too much is cut off. A
// text that Postgres refuses would keep its row as it was.
func StoredText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if utf8.RuneCountInString(text) > maxErrorChars {
		text = string([]rune(text)[:maxErrorChars])
	}
	return text
}
