package imagetest

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/childproc"
	"outboxrelay/internal/waittest"
)

const project = "relay-imagetest"

// composed runs a compose command on compose.yaml: with the plug-in, or with the program that was before it.
func composed(t *testing.T, args ...string) string {
	t.Helper()
	program := []string{"docker", "compose"}
	if _, err := command("docker", "compose", "version"); err != nil {
		program = []string{compose}
	}
	args = append(append(program[1:], "--project-name", project, "--file", root+"/compose.yaml"), args...)
	out, err := command(program[0], args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// What a newcomer does first: everything comes up in one command, somebody outside gets each tenant's events, and it goes
// without leaving anything behind.
func TestComposeShowsEventsFlowing(t *testing.T) {
	ports, err := childproc.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KAFKA_PORT", fmt.Sprint(ports[0]))
	t.Setenv("HTTP_PORT", fmt.Sprint(ports[1]))
	begin := time.Now()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(composed(t, "logs", "--no-color", "--tail=30"))
		}
		composed(t, "down", "--volumes")
		if left := docker(t, "ps", "--all", "--quiet", "--filter", "label=com.docker.compose.project="+project); left != "" {
			t.Errorf("containers are left: %s", left)
		}
	})
	composed(t, "up", "--build", "--detach")
	t.Logf("up after %s", time.Since(begin).Round(time.Second))

	awaitEvents(t, childproc.Loopback(ports[0]))
	t.Logf("events after %s", time.Since(begin).Round(time.Second))
	if events := composed(t, "logs", "--no-color", "events"); !strings.Contains(events, `"namespace":"orders"`) {
		t.Errorf("the events' log shows none:\n%s", events)
	}
	eventually(t, func() error { return ready(childproc.Loopback(ports[1])) })
	relay := composed(t, "ps", "--quiet", "relay")
	eventually(t, func() error { return healthy(relay) })

	begin = time.Now()
	composed(t, "stop", "relay")
	t.Logf("the relay stopped in %s", time.Since(begin).Round(time.Millisecond))
	if status := inspect(t, relay, "{{.State.ExitCode}}"); status != "0" {
		t.Errorf("the relay ended with status %s", status)
	}
}

// awaitEvents reads the topic from outside until both tenants had three events, each one that is as it should be.
func awaitEvents(t *testing.T, broker string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics("aksara.operation.transitions"),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := map[string]int{}
	for seen["acme"] < 3 || seen["globex"] < 3 {
		fetches := client.PollFetches(ctx) // errors are left to the client, which tries again
		if ctx.Err() != nil {
			t.Fatalf("events so far: %v, want 3 of acme and of globex", seen)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			event, err := envelope.Parse(recordOf(r))
			if err != nil {
				t.Errorf("record %d of partition %d: %v", r.Offset, r.Partition, err)
				return
			}
			tenant, _ := event.Scope.Tenant()
			seen[tenant]++
		})
	}
}

func recordOf(r *kgo.Record) envelope.Record {
	record := envelope.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, envelope.Header{Key: h.Key, Value: h.Value})
	}
	return record
}

// ready is nil if the relay at an address says that it is.
func ready(address string) error {
	response, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", response.Status)
	}
	return nil
}

// healthy is nil if the engine found a container healthy.
func healthy(container string) error {
	out, err := exec.Command("docker", "inspect", "--format", "{{.State.Health.Status}}", container).Output()
	if status := strings.TrimSpace(string(out)); err == nil && status != "healthy" {
		err = fmt.Errorf("the container is %s", status)
	}
	return err
}

// eventually waits until a condition holds, and fails with its last error.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	waittest.Until(t, patience, "a condition", condition)
}
