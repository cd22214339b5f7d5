package kafkaserver

import (
	"errors"
	"strings"
	"testing"

	"outboxrelay/internal/javalibs"
)

func TestStartWithoutJavaNamesIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	if _, err := Start(t.Context(), Options{}); !errors.Is(err, javalibs.ErrNoJava) {
		t.Errorf("Start without Java = %v", err)
	}
}

func TestProjectNamesTheVersion(t *testing.T) {
	t.Parallel()
	if got := strings.Count(project, "<version>"+version+"</version>"); got != 2 {
		t.Errorf("pom.xml has version %s %d times, want it for both of Kafka's artifacts", version, got)
	}
}
