package settings

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// checkUnknown faults every variable under our prefix that isn't ours: a misspelt
// name must not silently leave a default in place.
func (l *loader) checkUnknown() {
	known := knownNames()
	service := serviceNames()
	for _, name := range slices.Sorted(maps.Keys(l.given)) {
		if slices.Contains(known, name) || l.injected(service, name) {
			continue
		}
		if base, isFile := strings.CutSuffix(name, fileSuffix); isFile && slices.Contains(known, base) {
			l.fault(name, "is unknown: %s can't be given in a file", base)
			continue
		}
		if near := Nearest(name, known); near != "" {
			l.fault(name, "is unknown: did you mean %s?", near)
			continue
		}
		l.fault(name, "is unknown")
	}
}

// knownNames are the names of all variables and of their file forms.
func knownNames() []string {
	var names []string
	for _, v := range Variables() {
		names = append(names, v.Name)
		if v.File {
			names = append(names, v.Name+fileSuffix)
		}
	}
	return names
}

// serviceNames matches what Kubernetes gives a container for each Service of its
// namespace. The sub-match is the Service's name behind our prefix: empty for a
// Service called relay, HTTP for one called relay-http.
func serviceNames() *regexp.Regexp {
	return regexp.MustCompile(`^RELAY_(?:([A-Z0-9_]+?)_)??` +
		`(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?)?)$`)
}

// injected tells whether Kubernetes gave us the variable. For a Service called
// relay the name is enough. For relay-http and the like its host must be there too,
// or RELAY_HTTP_PORT, which somebody might take for a setting, would pass.
func (l *loader) injected(service *regexp.Regexp, name string) bool {
	match := service.FindStringSubmatch(name)
	if match == nil {
		return false
	}
	return match[1] == "" || l.given[prefix+match[1]+"_SERVICE_HOST"] != ""
}

// Nearest is the known name that is at most three typing mistakes away, of a short name fewer, or empty.
func Nearest(name string, known []string) string {
	best, fewest := "", min(4, 1+len(name)/2)
	for _, k := range known {
		if n := distance(name, k); n < fewest {
			best, fewest = k, n
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements of bytes that make b
// out of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
