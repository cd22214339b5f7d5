package main

import (
	"os/exec"
	"testing"
)

// Each step that can be taken out stands where it is looked for, and the program builds without it.
func TestMutationsBuild(t *testing.T) {
	t.Chdir("..")
	for name, m := range mutations {
		overlay, err := m.overlay(t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if output, err := exec.Command("go", "vet", "-overlay", overlay, "./relay", "./kafkasink").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
}
