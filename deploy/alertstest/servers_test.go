package alertstest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kfake"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/waittest"
	"outboxrelay/migrations"
)

// patience is for each single step, on a busy machine.
const patience = 2 * time.Minute

// scene is a database with an outbox, a broker, and where a relay serves HTTP.
type scene struct {
	t    *testing.T
	db   *pgtest.DB
	pool *pgxpool.Pool
	env  []string
	http string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	db := pgtest.Database(t, pgtest.Setup{Name: "standalone", Apply: func(ctx context.Context, url string) error {
		return migrations.StandaloneSchema(ctx, url, "public")
	}})
	broker := kafkatest.Fake(t, kfake.SeedTopics(1, "events"))
	address := free(t)
	return &scene{t: t, db: db, pool: db.Pool(t), http: address, env: []string{
		"RELAY_DATABASE_URL=" + db.URL, "RELAY_NAMESPACE=orders", "RELAY_TENANTS=acme",
		"RELAY_KAFKA_BROKERS=" + strings.Join(broker.Addrs, ","), "RELAY_KAFKA_TOPIC=events", "RELAY_KAFKA_MIN_INSYNC_REPLICAS=1",
		"RELAY_HTTP_ADDRESS=" + address,
	}}
}

func free(t *testing.T) string {
	t.Helper()
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return childproc.Loopback(ports[0])
}

// startRelay builds the program and runs it.
func (s *scene) startRelay(t *testing.T) *childproc.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relay")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", path, "./cmd/relay").CombinedOutput(); err != nil {
		t.Fatalf("build relay: %v\n%s", err, out)
	}
	return start(t, childproc.Command{Path: path, Args: []string{"run"}, Env: s.env})
}

// start runs a program until the test ends.
func start(t *testing.T, command childproc.Command) *childproc.Process {
	t.Helper()
	command.Log = filepath.Join(t.TempDir(), "log")
	process, err := childproc.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if log, err := os.ReadFile(command.Log); t.Failed() && err == nil {
			t.Logf("%s printed:\n%s", command.Path, log)
		}
	})
	return process
}

// prometheus is one that scrapes every second.
type prometheus struct{ address string }

const configuration = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: relay
    static_configs: [{targets: ["%s"]}]
`

// startPrometheus has one watch the relay at an address, with our rules.
func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	absolute, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, absolute, target), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &prometheus{address: free(t)}
	start(t, childproc.Command{Path: "prometheus", Args: []string{"--config.file=" + config,
		"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + p.address}})
	until(t, func() error {
		n, err := p.results(t, `up{job="relay"} == 1`)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d relays are scraped", n)
		}
		return err
	})
	return p
}

// results is how many series answer a query.
func (p *prometheus) results(t *testing.T, query string) (int, error) {
	t.Helper()
	var answer struct {
		Error string
		Data  struct{ Result []any }
	}
	if err := p.ask("/api/v1/query?query="+url.QueryEscape(query), &answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		t.Fatalf("%s: %s", query, answer.Error) // it can't be a query
	}
	return len(answer.Data.Result), nil
}

func (p *prometheus) ask(path string, answer any) error {
	response, err := http.Get("http://" + p.address + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(answer)
}

// until waits for a condition, and fails with its last error.
func until(t *testing.T, condition func() error) {
	t.Helper()
	waittest.Until(t, patience, "a condition", condition)
}
