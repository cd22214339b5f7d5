package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Links from pages to files of the project lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pages := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		pages++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			file, _, _ := strings.Cut(match[1], "#")
			if file == "" || strings.Contains(file, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), file)); err != nil {
				t.Errorf("%s links to %s: %v", path, match[1], err)
			}
		}
		return nil
	})
	if err != nil || pages == 0 {
		t.Errorf("%d pages, %v", pages, err)
	}
}
