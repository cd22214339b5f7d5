package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one broken rule of the configuration text. It holds no secret.
type Fault struct {
	// Names are the variables that the rule is about.
	Names []string
	// Problem says what is wrong and what to give instead.
	Problem string
}

// Error is the names and the problem, in one line.
func (f Fault) Error() string {
	return strings.Join(f.Names, ", ") + ": " + f.Problem
}

// Faults are all faults of a configuration; the error that [Load] returns.
type Faults []Fault

// Error gives each fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// fault notes what is wrong with a variable's text by itself.
func (l *loader) fault(name, format string, args ...any) {
	l.faults = append(l.faults, Fault{Names: []string{name}, Problem: fmt.Sprintf(format, args...)})
}

// broken notes a broken rule between variables.
func (l *loader) broken(names []string, format string, args ...any) {
	l.rules = append(l.rules, Fault{Names: names, Problem: fmt.Sprintf(format, args...)})
}

// sound tells whether the text of each of these variables is right by itself. Rules
// between variables ask it first, so that one mistake isn't reported as several.
func (l *loader) sound(names ...string) bool {
	return !slices.ContainsFunc(l.faults, func(f Fault) bool {
		return slices.ContainsFunc(f.Names, func(name string) bool {
			return slices.Contains(names, strings.TrimSuffix(name, fileSuffix)) || slices.Contains(names, name)
		})
	})
}
