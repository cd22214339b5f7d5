package deploy

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	strict "sigs.k8s.io/yaml"

	"outboxrelay/internal/settings"
)

type composeFile struct {
	Services map[string]struct {
		Image       string            `json:"image"`
		Environment map[string]string `json:"environment"`
		Grace       string            `json:"stop_grace_period"`
	} `json:"services"`
}

// Every relay in compose.yaml has a configuration that loads, and the time that it needs to end.
func TestComposeConfiguresTheRelay(t *testing.T) {
	text, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file composeFile
	if err := strict.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, service := range file.Services {
		if service.Image != file.Services["relay"].Image {
			continue
		}
		found++
		s, err := settings.Load(variables(service.Environment), os.ReadFile, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name != "relay" {
			continue
		}
		if grace, err := time.ParseDuration(service.Grace); err != nil || grace <= s.ShutdownGrace {
			t.Errorf("stop_grace_period is %q (%v), and the relay takes %s", service.Grace, err, s.ShutdownGrace)
		}
	}
	if found < 2 {
		t.Errorf("services: %v", slices.Collect(maps.Keys(file.Services)))
	}
}
