package settings

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"outboxrelay/envelope"
)

// TestTenantsFileWatch tells a file's life: each step changes it, and wants what the
// next looks report, if anything.
func TestTenantsFileWatch(t *testing.T) {
	t.Parallel()
	const gone = "\x00gone" // stands for no file at all
	steps := []struct {
		content string
		want    []string // the new list, or nil
		err     string   // the error, or empty; both empty for no report
	}{
		{"acme\n", nil, ""}, // as loaded
		{"acme\nglobex\n", []string{"acme", "globex", ""}, ""},
		{"acme\r\n\r\nglobex", nil, ""}, // says the same
		{gone, nil, "RELAY_TENANTS_FILE: the file can't be read: file does not exist"},
		{"", nil, "RELAY_TENANTS_FILE: the file is empty"},
		{"\n \n", nil, "RELAY_TENANTS_FILE: holds no tenant"},
		{"acme\nacme\n", nil, "stands there already"},
		{"acme\nglobex\n", []string{"acme", "globex", ""}, ""}, // good again, and told so
		{`["globex"]`, []string{"globex", ""}, ""},
		{"[", nil, "no JSON array"},
		{"initech", []string{"initech", ""}, ""},
	}
	synctest.Test(t, func(t *testing.T) {
		var content atomic.Value
		content.Store("acme\n")
		read := func(name string) ([]byte, error) {
			if name != "tenants" {
				t.Errorf("read %q", name)
			}
			if content.Load() == gone {
				return files{}.read(name)
			}
			return []byte(content.Load().(string)), nil
		}
		env := with("RELAY_TENANTS", "", "RELAY_TENANTS_FILE", "tenants", "RELAY_NON_TENANT", "true")
		s, err := Load(environOf(env), read, host)
		if err != nil {
			t.Fatal(err)
		}
		type news struct {
			scopes []envelope.Scope
			err    error
		}
		reported := make(chan news, 10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			NewTenantsFile(s, read).Watch(ctx, 10*time.Second, func(scopes []envelope.Scope, err error) {
				reported <- news{scopes, err}
			})
		}()
		for _, step := range steps {
			content.Store(step.content)
			time.Sleep(30 * time.Second) // of the bubble's clock: three looks, one report at most
			synctest.Wait()
			var reports []news
			for len(reported) > 0 {
				reports = append(reports, <-reported)
			}
			switch {
			case step.want == nil && step.err == "":
				if len(reports) != 0 {
					t.Errorf("%q: reported %v", step.content, reports)
				}
			case len(reports) != 1:
				t.Errorf("%q: reported %v, want one report", step.content, reports)
			case step.err != "":
				if err := reports[0].err; err == nil || !strings.Contains(err.Error(), step.err) || reports[0].scopes != nil {
					t.Errorf("%q: reported %v, want %q", step.content, reports[0], step.err)
				}
			case reports[0].err != nil || !slices.Equal(ids(reports[0].scopes), step.want):
				t.Errorf("%q: reported %v, want %q", step.content, reports[0], step.want)
			}
		}
		cancel()
		<-done
	})
}

func TestTenantsFileHoldsTopicRules(t *testing.T) {
	t.Parallel()
	f := files{"tenants": "acme"}
	s := mustLoad(t, with("RELAY_TENANTS", "", "RELAY_TENANTS_FILE", "tenants", "RELAY_KAFKA_TOPIC", "x.{tenant}"), f)
	f["tenants"] = "acme\nno topic"
	var got error
	NewTenantsFile(s, f.read).look(func(_ []envelope.Scope, err error) { got = err })
	if got == nil || !strings.Contains(got.Error(), `RELAY_KAFKA_TOPIC, RELAY_TENANTS: topic "x.no topic"`) {
		t.Errorf("reported %v", got)
	}
}
