package alertstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
)

const (
	rules     = "../prometheus/alerts.yaml"
	unitTests = "../prometheus/alerts.test.yaml"
	dashboard = "../grafana/relay.json"
)

// Each alert fires when it should and does not when it shouldn't, by promtool's simulation.
func TestAlertsFireAndRest(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", unitTests}} {
		out, err := exec.Command("promtool", args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// A Prometheus that scrapes a relay can evaluate every alert, has an answer to each of the dashboard's queries, and sees what
// happens to the relay.
func TestPrometheusWatchesARelay(t *testing.T) {
	s := newScene(t)
	s.fill(20)
	s.db.Exec(t, `update aksara_operation_outbox set payload = '[]' where id = (select min(id) from aksara_operation_outbox)`)
	relay := s.startRelay(t)
	s.exported(t, 19)
	p := startPrometheus(t, s.http)

	t.Run("alerts can be evaluated", func(t *testing.T) {
		until(t, func() error { return p.healthyRules(t) })
	})
	t.Run("the dashboard shows something", func(t *testing.T) {
		for _, q := range queries(t) {
			until(t, func() error {
				s.fill(1) // rates need something that goes on
				if n, err := p.results(t, q); err != nil || n == 0 {
					return fmt.Errorf("%d results of %s: %v", n, q, err)
				}
				return nil
			})
		}
	})
	t.Run("nothing fires without reason", func(t *testing.T) {
		until(t, func() error { return p.wantAlerts(t, "RelayEventsParked") })
	})
	t.Run("a relay that is gone is missed", func(t *testing.T) {
		relay.Kill()
		until(t, func() error { return p.wantAlerts(t, "RelayAbsent") })
	})
}

// queries are those of the dashboard, as it would ask them.
func queries(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$job", "relay", "$__rate_interval", "10s")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all = append(all, fill.Replace(target.Expr))
		}
	}
	if len(all) == 0 {
		t.Fatal("the dashboard asks for nothing")
	}
	return all
}

// healthyRules is nil if all rules were evaluated without an error.
func (p *prometheus) healthyRules(t *testing.T) error {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := p.ask("/api/v1/rules", &answer); err != nil {
		return err
	}
	n := 0
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			if n++; rule.Health != "ok" {
				return fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	if n == 0 {
		return fmt.Errorf("there are no rules")
	}
	return nil
}

// wantAlerts is nil if exactly these alerts fire, or would if it went on.
func (p *prometheus) wantAlerts(t *testing.T, want ...string) error {
	t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct{ Labels struct{ Alertname string } }
		}
	}
	if err := p.ask("/api/v1/alerts", &answer); err != nil {
		return err
	}
	var got []string
	for _, alert := range answer.Data.Alerts {
		got = append(got, alert.Labels.Alertname)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("alerts %v, want %v", got, want)
	}
	return nil
}

// fill writes operations of one tenant.
func (s *scene) fill(operations int) {
	s.t.Helper()
	acme, err := envelope.Tenant("acme")
	if err == nil {
		err = sample.Application{Namespace: "orders"}.Fill(s.t.Context(), s.pool, acme, operations, 1)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// exported waits until so many events are delivered.
func (s *scene) exported(t *testing.T, want int) {
	t.Helper()
	until(t, func() error {
		var n int
		err := s.pool.QueryRow(t.Context(), "select count(*) from aksara_operation_outbox where exported_at is not null").Scan(&n)
		if err == nil && n < want {
			err = fmt.Errorf("%d events are exported, want %d", n, want)
		}
		return err
	})
}
