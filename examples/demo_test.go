package examples

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// What README.md suggests to play with: the demonstration kills its relay, which delivers an event twice, and stays up.
// Each example reads all that and counts each event once.
func TestExamplesBesideTheDemo(t *testing.T) {
	t.Parallel()
	all := programs(t)
	folder := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", folder, "../cmd/demo", "../cmd/relay").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	shown := &relayproc.Log{}
	demo := exec.Command(filepath.Join(folder, "demo"), "-keep", "-relay", filepath.Join(folder, "relay"))
	demo.Stdout, demo.Stderr = shown, shown
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = demo.Process.Signal(syscall.SIGTERM) // it removes its servers; an error says that it has ended
		_ = demo.Wait()
		if t.Failed() {
			t.Logf("the demonstration:\n%s", shown)
		}
	})
	address := regexp.MustCompile(`kcat -C -b (\S+) -t (\S+)`)
	relayproc.Within(t, 5*time.Minute, "the end of the demonstration's story", func() error {
		if !address.MatchString(shown.String()) {
			return fmt.Errorf("it is not told")
		}
		return nil
	})
	found := address.FindStringSubmatch(shown.String())
	broker, topic := &kafkatest.Broker{Addrs: found[1:2]}, found[2]
	again := duplicate(t, broker.All(t, topic))
	for _, p := range all {
		db := pgtest.Database(t, tables)
		p.start(t, broker.Addrs, topic, group(p), db.URL)
		admin := broker.Admin(t)
		relayproc.Until(t, p.name+" to read past the duplicate", func() error {
			committed, err := admin.FetchOffsets(t.Context(), group(p))
			if at, _ := committed.Lookup(topic, again.Partition); err == nil && at.At <= again.Offset {
				err = fmt.Errorf("it has read to %d, the duplicate is at %d", at.At, again.Offset)
			}
			return err
		})
		var all, wrong int
		err := db.Conn(t).QueryRow(t.Context(), "select count(*), count(*) filter (where events <> version) from operation_state").Scan(&all, &wrong)
		if err != nil || all == 0 || wrong > 0 {
			t.Errorf("%s: of %d operations %d have another number of events than their version, %v", p.name, all, wrong, err)
		}
	}
}

// duplicate gives a record that came before.
func duplicate(t *testing.T, records []*kgo.Record) *kgo.Record {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range records {
		e := relayproc.Event(t, r)
		key := e.Source() + " " + e.ID()
		if seen[key] {
			return r
		}
		seen[key] = true
	}
	t.Fatal("no event came twice")
	return nil
}
