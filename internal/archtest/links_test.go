package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are the project's, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	return all
}

// Links from pages to files of the project lead somewhere, and to the section that they name.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	all := pages(t)
	for path, text := range all {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			file, section, _ := strings.Cut(match[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, match[1], err)
			} else if section != "" && !slices.Contains(sections(all[target]), section) {
				t.Errorf("%s links to %s, which has no such section", path, match[1])
			}
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unnamed = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// sections are the names by which a page's headings are linked to.
func sections(text string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return names
}
