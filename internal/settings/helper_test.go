package settings

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// minimal is the least that makes a configuration.
func minimal() map[string]string {
	return map[string]string{
		"RELAY_DATABASE_URL":  "postgres://relay@db/app",
		"RELAY_NAMESPACE":     "shop",
		"RELAY_TENANTS":       "acme,globex",
		"RELAY_KAFKA_BROKERS": "kafka:9092",
	}
}

// with is minimal and the given changes; pairs are name, value.
func with(pairs ...string) map[string]string {
	env := minimal()
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return env
}

func environOf(env map[string]string) []string {
	var environ []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		environ = append(environ, name+"="+env[name])
	}
	return environ
}

// files reads from memory, with the errors of os.ReadFile.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	content, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(content), nil
}

const host = "pod-3"

func mustLoad(t *testing.T, env map[string]string, f files) *Settings {
	t.Helper()
	s, err := Load(environOf(env), f.read, host)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return s
}

// loadFaults loads what must be faulty.
func loadFaults(t *testing.T, env map[string]string, f files) Faults {
	t.Helper()
	s, err := Load(environOf(env), f.read, host)
	var faults Faults
	if !errors.As(err, &faults) || len(faults) == 0 || s != nil {
		t.Fatalf("Load = %v, %v; want no settings and Faults", s, err)
	}
	return faults
}

// wantFault wants exactly one fault, of these variables, that holds the text.
func wantFault(t *testing.T, faults Faults, text string, names ...string) {
	t.Helper()
	if len(faults) != 1 || !slices.Equal(faults[0].Names, names) || !strings.Contains(faults[0].Problem, text) {
		t.Fatalf("faults = %q\nwant one of %q with %q", faults, names, text)
	}
}
