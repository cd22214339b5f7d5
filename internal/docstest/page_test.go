package docstest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// block is a sample of a page.
type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// blocks are a page's, with this scene's names in place of the page's.
func (s *scene) blocks(page string) (all []block) {
	s.t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{match[1], s.names.Replace(match[2])})
	}
	if len(all) == 0 {
		s.t.Fatalf("%s has no samples", page)
	}
	return all
}

// run runs a page's samples.
func (s *scene) run(page string) {
	s.t.Helper()
	for _, b := range s.blocks(page) {
		switch b.language {
		case "env":
			for line := range strings.Lines(b.text) {
				s.env = append(s.env, strings.TrimSpace(line))
			}
		case "sql":
			if _, err := s.db.Exec(s.t.Context(), b.text); err != nil {
				s.t.Fatalf("%v:\n%s", err, b.text)
			}
		case "sh":
			if strings.TrimSpace(b.text) == "relay" {
				s.startRelay()
				continue
			}
			s.printed = s.shell(b.text)
		case "text":
			s.wantPrinted(b.text)
		default:
			s.t.Errorf("%s has a sample of %q, which nobody runs:\n%s", page, b.language, b.text)
		}
	}
}

// shell runs commands, of which none may fail, and gives what they print.
func (s *scene) shell(commands string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-eu", "-c", commands)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v:\n%s\n%s", err, commands, out)
	}
	return string(out)
}

// wantPrinted fails unless what was printed last has these lines, in this order.
func (s *scene) wantPrinted(lines string) {
	s.t.Helper()
	rest := s.printed
	for line := range strings.Lines(lines) {
		pattern := "(?m)^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), `\.\.\.`, ".*") + "$"
		found := regexp.MustCompile(pattern).FindStringIndex(rest)
		if found == nil {
			s.t.Errorf("the page shows\n%s\nwhich was not printed:\n%s", line, s.printed)
			continue
		}
		rest = rest[found[1]:]
	}
}
