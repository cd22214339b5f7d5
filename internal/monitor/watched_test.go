package monitor_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.yaml.in/yaml/v3"

	"outboxrelay/internal/monitor"
)

const (
	alertsFile     = "../../deploy/prometheus/alerts.yaml"
	alertTestsFile = "../../deploy/prometheus/alerts.test.yaml"
	dashboardFile  = "../../deploy/grafana/relay.json"
	operationsFile = "../../docs/operations.md"
)

// exposed are the metrics of a relay by name, with the values of each label.
func exposed(t *testing.T) map[string]map[string][]string {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/nowhere") // connects when it is first needed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	m := monitor.NewMetrics("v", "go", 1)
	m.Pool(pool.Stat)
	_, _, body := get(t, monitor.Handler(m, nil, nil, nil), "GET", "/metrics")
	all := map[string]map[string][]string{}
	sample := regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? `)
	for line := range strings.Lines(body) {
		parts := sample.FindStringSubmatch(line)
		if parts == nil {
			continue // a comment
		}
		if all[parts[1]] == nil {
			all[parts[1]] = map[string][]string{}
		}
		for _, label := range matcher.FindAllStringSubmatch(parts[2], -1) {
			all[parts[1]][label[1]] = append(all[parts[1]][label[1]], label[2])
		}
	}
	return all
}

var (
	matcher  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
	selector = regexp.MustCompile(`\b((?:relay|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	grouping = regexp.MustCompile(`\b(?:by|without|on) \(([^)]*)\)`)
	shown    = regexp.MustCompile(`\{\{ *([a-z_]+) *\}\}`)
	// Prometheus and Kubernetes add these to each metric.
	ofTargets = []string{"job", "instance", "pod", "container"}
)

type alert struct {
	Name        string `yaml:"alert"`
	Expr        string
	Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	decodeYAML(t, alertsFile, &file)
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all
}

func decodeYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A query names only metrics and labels that a relay has, or that are added to each.
func wantExposed(t *testing.T, where, expr string, all map[string]map[string][]string) {
	t.Helper()
	known := slices.Clone(ofTargets)
	metrics := selector.FindAllStringSubmatch(expr, -1)
	if len(metrics) == 0 {
		t.Errorf("%s names no metric: %s", where, expr)
	}
	for _, metric := range metrics {
		labels, ok := all[metric[1]]
		if !ok {
			t.Errorf("%s: no relay has a metric %s", where, metric[1])
			continue
		}
		known = slices.AppendSeq(known, maps.Keys(labels))
		for _, m := range matcher.FindAllStringSubmatch(metric[2], -1) {
			if !slices.Contains(ofTargets, m[1]) && !slices.Contains(labels[m[1]], m[2]) {
				t.Errorf("%s: %s never has %s=%q", where, metric[1], m[1], m[2])
			}
		}
	}
	for _, group := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(group[1], ",") {
			if !slices.Contains(known, strings.TrimSpace(label)) {
				t.Errorf("%s: there is no label %s in %s", where, label, expr)
			}
		}
	}
}

// Each alert asks for what there is, is described, and is tested both ways.
func TestAlerts(t *testing.T) {
	t.Parallel()
	all, operations := exposed(t), string(read(t, operationsFile))
	var tests struct {
		Tests []struct {
			Checks []struct {
				Alertname string
				Alerts    []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	decodeYAML(t, alertTestsFile, &tests)
	for _, a := range alerts(t) {
		wantExposed(t, a.Name, a.Expr, all)
		if want := "docs/operations.md#" + strings.ToLower(a.Name); a.Annotations["runbook"] != want || a.Annotations["summary"] == "" {
			t.Errorf("%s: annotations %q, want a summary, and %s as runbook", a.Name, a.Annotations, want)
		}
		if !strings.Contains(operations, "\n### "+a.Name+"\n") {
			t.Errorf("%s has no section in %s", a.Name, operationsFile)
		}
		fires, rests := false, false
		for _, test := range tests.Tests {
			for _, check := range test.Checks {
				fires = fires || check.Alertname == a.Name && len(check.Alerts) > 0
				rests = rests || check.Alertname == a.Name && len(check.Alerts) == 0
			}
		}
		if !fires || !rests {
			t.Errorf("%s has no test in which it fires (%t), or none in which it does not (%t)", a.Name, fires, rests)
		}
	}
	for _, section := range regexp.MustCompile(`\n### (Relay[A-Z]\w+)\n`).FindAllStringSubmatch(operations, -1) {
		if !slices.ContainsFunc(alerts(t), func(a alert) bool { return a.Name == section[1] }) {
			t.Errorf("%s describes %s, which is no alert", operationsFile, section[1])
		}
	}
}

// Each metric that a page names is one that a relay has.
func TestPagesNameMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	all := exposed(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		for _, metric := range regexp.MustCompile("`(relay_[a-z_]+)[`{]").FindAllStringSubmatch(string(read(t, page)), -1) {
			if all[metric[1]] == nil && all[metric[1]+"_count"] == nil && !slices.Contains(others, metric[1]) {
				t.Errorf("%s names %s, which no relay has", page, metric[1])
			}
		}
	}
}

// others are names in pages that look like metrics: headers of dead letters, an index, a table.
var others = []string{"relay_error", "relay_attempts", "relay_topic", "relay_truncated", "relay_outbox_operation", "relay_inbox"}

// Each panel of the dashboard asks for what there is.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(read(t, dashboardFile), &dashboard); err != nil {
		t.Fatal(err)
	}
	all := exposed(t)
	var expressions []string
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			wantExposed(t, panel.Title, target.Expr, all)
			expressions = append(expressions, target.Expr)
			for _, label := range shown.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, "by ("+label[1]+")") {
					t.Errorf("panel %q shows label %s, which is not in the result of %s", panel.Title, label[1], target.Expr)
				}
			}
		}
	}
	// Whatever the relay itself measures can be seen.
	asked := strings.Join(expressions, "\n")
	for name := range all {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "relay_") && !strings.Contains(asked, base) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// No label names a tenant or a topic: those that there are have few values.
func TestLabelsAreFew(t *testing.T) {
	t.Parallel()
	may := []string{"outcome", "state", "le", "version", "goversion", "quantile"}
	for name, labels := range exposed(t) {
		for label := range labels {
			if !slices.Contains(may, label) {
				t.Errorf("%s has a label %s", name, label)
			}
		}
	}
}
