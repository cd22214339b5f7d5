package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Secret is a value that never shows itself: however it is printed or encoded, it
// is "***", or nothing if it isn't set. The zero value is a secret that isn't set.
type Secret struct {
	// Two steps away: fmt can't call the methods of unexported fields, and where it
	// looks into them by itself it follows one pointer.
	hidden **hidden
}

type hidden struct {
	name  string // the variable
	value string
	file  string // where the value came from, or empty
}

// NewSecret hides a value that comes from no variable.
func NewSecret(value string) Secret { return hide(hidden{value: value}) }

func hide(h hidden) Secret {
	inner := &h
	return Secret{&inner}
}

func (s Secret) look() hidden {
	if s.hidden == nil {
		return hidden{}
	}
	return **s.hidden
}

// IsSet tells whether there is a value.
func (s Secret) IsSet() bool { return s.look().value != "" }

// Value is the secret as it was loaded.
func (s Secret) Value() string { return s.look().value }

// File is the name of the file that the value came from, or empty.
func (s Secret) File() string { return s.look().file }

// From is the name of the variable that gave the value, or empty.
func (s Secret) From() string {
	switch h := s.look(); {
	case h.file != "":
		return h.name + fileSuffix
	case h.value != "":
		return h.name
	}
	return ""
}

// Read is the secret as it is now: its file is read again, without a file it is
// Value. The error names the variable.
func (s Secret) Read(readFile func(string) ([]byte, error)) (string, error) {
	if s.File() == "" {
		return s.Value(), nil
	}
	value, problem := readValue(readFile, s.File())
	if problem != "" {
		return "", Fault{Names: []string{s.look().name + fileSuffix}, Problem: problem}
	}
	return value, nil
}

// String is "***", or empty if the secret isn't set.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return "***"
}

// Format prints String for every verb.
func (s Secret) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, s.String()) // fmt has no place for an error
}

// MarshalText is String; encoding/json uses it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// readValue reads a value from its file, without the line ends behind it. The
// problem never repeats the file's name: somebody may have put the secret itself
// where the name of its file belongs.
func readValue(readFile func(string) ([]byte, error), file string) (value, problem string) {
	content, err := readFile(file)
	if err != nil {
		if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
			return "", "the file can't be read: " + pathError.Err.Error()
		}
		return "", "the file can't be read"
	}
	value = strings.TrimRight(string(content), "\r\n")
	if value == "" {
		return "", "the file is empty"
	}
	return value, ""
}
