package deploy

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The dashboard is one by Grafana's own types, its panels have ids of their own, and none lies on another.
func TestDashboardIsGrafanas(t *testing.T) {
	plugins.RegisterDefaultPlugins() // kinds of panels and of queries
	text, err := os.ReadFile("grafana/relay.json")
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 the newer form needs a Grafana that few have
	var strictly dashboard.Dashboard
	// Some of its functions return an empty list, which is no nil error.
	var faults cog.BuildErrors
	if err := strictly.UnmarshalJSONStrict(text); err != nil && (!errors.As(err, &faults) || len(faults) > 0) {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for i, a := range d.Panels {
		if p := a.GridPos; p.X < 0 || p.W <= 0 || p.H <= 0 || p.X+p.W > 24 {
			t.Errorf("panel %q lies at %+v", a.Title, p)
		}
		for _, b := range d.Panels[:i] {
			p, q := a.GridPos, b.GridPos
			if a.ID == b.ID || p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H {
				t.Errorf("panels %q and %q have one id, or one place", a.Title, b.Title)
			}
		}
	}
}
