package settings

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Each of these parses one variable's text, notes a fault if it isn't allowed, and
// then returns the zero value. A text that is empty has no value and no default.

func (l *loader) boolean(name, text string) bool {
	value, err := strconv.ParseBool(text)
	if text != "" && err != nil {
		l.fault(name, "%.40q is not allowed: give true or false", text)
	}
	return value
}

func (l *loader) choice(name, text string) string {
	choices := variable(name).choices
	if text != "" && !slices.Contains(choices, text) {
		l.fault(name, "%.40q is not allowed: give one of %s", text, strings.Join(choices, ", "))
		return ""
	}
	return text
}

func (l *loader) integer(name, text string) int {
	return int(l.bounded(name, text, func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) },
		func(n int64) string { return strconv.FormatInt(n, 10) },
		"a whole number"))
}

func (l *loader) duration(name, text string) time.Duration {
	return time.Duration(l.bounded(name, text,
		func(text string) (int64, error) { d, err := time.ParseDuration(text); return int64(d), err },
		func(n int64) string { return formatDuration(time.Duration(n)) },
		"a number with its unit, such as 250ms, 30s or 5m,"))
}

func (l *loader) size(name, text string) int {
	return int(l.bounded(name, text, parseSize, formatSize, "a whole number of B, KiB, MiB or GiB, such as 4MiB,"))
}

// bounded parses a quantity and holds it against the limits of its variable.
func (l *loader) bounded(name, text string, parse func(string) (int64, error), format func(int64) string, want string) int64 {
	if text == "" {
		return 0
	}
	v := variable(name)
	n, err := parse(text)
	if err != nil || n < v.min || n > v.max {
		l.fault(name, "%.40q is not allowed: give %s from %s to %s", text, want, format(v.min), format(v.max))
		return 0
	}
	return n
}

// plain is a name that people read and compare, so it must look like what it is.
func (l *loader) plain(name, text string) string {
	longest := variable(name).max
	switch {
	case !utf8.ValidString(text):
		l.fault(name, "is not valid UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		l.fault(name, "%.40q holds a control character", text)
	case strings.TrimSpace(text) != text:
		l.fault(name, "%.40q begins or ends with a blank", text)
	case longest > 0 && utf8.RuneCountInString(text) > int(longest):
		l.fault(name, "is %d characters long: give at most %d", utf8.RuneCountInString(text), longest)
	}
	return text
}

// path is the name of a file. Whether the file is there shows when it is needed: it
// may well come later.
func (l *loader) path(name, text string) string {
	if strings.ContainsRune(text, 0) || text != "" && strings.TrimSpace(text) == "" {
		l.fault(name, "%.40q is no name of a file", text)
	}
	return text
}

// httpAddress is host:port, or empty for off. Port 0 is any free one.
func (l *loader) httpAddress(text string) string {
	if text == "off" {
		return ""
	}
	if err := checkAddress(text, 0); err != nil {
		l.fault("RELAY_HTTP_ADDRESS", "%.40q is not allowed: %v; give host:port, such as :8080 or 127.0.0.1:8080, or off", text, err)
	}
	return text
}

// checkAddress errs if text isn't host:port with a number as its port.
func checkAddress(text string, lowestPort uint64) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return errors.New("it isn't host:port")
	}
	if strings.ContainsAny(host, "/@ \t\r\n\"'") || strings.ContainsFunc(host, unicode.IsControl) {
		return errors.New("the host holds a character that no host name has")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < lowestPort {
		return fmt.Errorf("the port is no number from %d to 65535", lowestPort)
	}
	return nil
}
