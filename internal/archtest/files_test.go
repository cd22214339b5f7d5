package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The program runs in an image that holds nothing else and can't be written to.
func TestTheProgramNeedsNoFilesOfItsOwn(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, path := range append(all["cmd/relay"].Deps, module+"/cmd/relay") {
		name, ours := strings.CutPrefix(path, module+"/")
		if !ours {
			continue
		}
		p := all[name]
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{
				"os.Create", "os.OpenFile", "os.WriteFile", "os.Mkdir", "os.Rename", "os.Executable", "os.TempDir",
				"user.Current", "user.Lookup", "time.LoadLocation", "exec.Command",
			} {
				if strings.Contains(string(text), call) {
					t.Errorf("%s/%s calls %s", name, file, call)
				}
			}
		}
	}
}
