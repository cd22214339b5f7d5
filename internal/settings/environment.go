package settings

import "strings"

const (
	prefix     = "RELAY_"
	fileSuffix = "_FILE"
)

// environment keeps the relay's own variables that have a value: empty means unset.
// Of a name that stands twice the first counts, as in os.Getenv.
func environment(environ []string) map[string]string {
	given := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || value == "" {
			continue
		}
		if _, again := given[name]; !again {
			given[name] = value
		}
	}
	return given
}

// Lookup is the text of a variable: its own value, that of its file, or the
// default. go-envconfig asks it for each field of [texts].
func (l *loader) Lookup(name string) (string, bool) {
	v := variable(name)
	value, file := l.given[name], l.fileOf(v)
	switch {
	case value != "" && file != "":
		l.faults = append(l.faults, Fault{Names: []string{name, name + fileSuffix}, Problem: "both are set: keep one of them"})
		return "", false
	case file != "":
		value, problem := readValue(l.readFile, file)
		if problem != "" {
			l.fault(name+fileSuffix, "%s", problem)
			return "", false
		}
		return value, true
	case value != "":
		return value, true
	}
	return v.Default, v.Default != ""
}

// fileOf is the file that holds a variable's value, or empty.
func (l *loader) fileOf(v Variable) string {
	if !v.File {
		return ""
	}
	return l.given[v.Name+fileSuffix]
}
