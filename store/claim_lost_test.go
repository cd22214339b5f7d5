package store_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// The network lets small answers through and no large ones. Claims whose answers are lost, again and again, are no
// evidence against their rows: those are neither parked nor lost, and are read when the network is mended.
func TestLostAnswersAreNoEvidence(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string]int{"of claims": 1, "with payloads": 3000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f *fixture) { f.lostAnswers(t, bytes) })
		})
	}
}

func (f *fixture) lostAnswers(t *testing.T, bytes int) {
	scope := tenant(t, "acme")
	row := f.fill(t, scope, 1, 1)[0][0]
	f.exec(t, `update aksara_operation_outbox set payload = payload || jsonb_build_object('more', repeat('x', 20000)) where id = $1`, row)
	f.claim(t, scope)
	narrow, cut := f.narrow(t)
	for n := range relay.MostMarks + 2 {
		f.expire(t)
		if _, err := narrow.Claim(t.Context(), request(scope)); err != nil { // finds out that there is one
			t.Fatal(err)
		}
		mend := cut(bytes)
		claim, err := narrow.Claim(t.Context(), abandonedRequest(scope))
		mend()
		if bytes == 1 {
			if err == nil {
				t.Fatalf("claim %d was answered", n)
			}
			continue
		}
		if err != nil || len(claim.Rows) != 1 || claim.Rows[0].Err == nil || claim.Rows[0].Payload != nil {
			t.Fatalf("claim %d: %d rows, %v; want its row, and why its payload was not read", n, len(claim.Rows), err)
		}
		if got := relay.ClassOf(claim.Rows[0].Err); got != relay.Failed {
			t.Errorf("class %v, want failed", got)
		}
		f.settle(t, claim, relay.Verdict{Wait: time.Nanosecond, Error: "unread"})
		f.claim(t, scope) // and this one runs out
	}
	f.expire(t)
	f.claim(t, scope)
	claim := f.claimWith(t, abandonedRequest(scope))
	if len(claim.Rows) != 1 || !strings.HasSuffix(claim.Token, "!") || strings.HasSuffix(claim.Token, "!!") || len(claim.Rows[0].Payload) < 20000 {
		t.Errorf("%d rows under %q; want the row with its payload, and one mark", len(claim.Rows), claim.Token)
	}
}

// abandonedRequest is one for rows that were left behind, with a token that marks can stand behind.
func abandonedRequest(scope envelope.Scope) relay.Request {
	req := request(scope)
	req.Token, req.Abandoned = "worker/"+strings.ReplaceAll(uuid.NewString(), "-", "")[:16], true
	return req
}

// narrow opens a store behind a network that can be made to let so many more bytes through on each connection to it, and
// then cut that.
func (f *fixture) narrow(t *testing.T) (*store.Store, func(bytes int) (mend func())) {
	t.Helper()
	address, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	link := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), t.Name(), "127.0.0.1:0", address.Host)
	if err := link.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Stop)
	address.Host = link.Listen
	return f.open(t, store.Config{URL: address.String()}), func(bytes int) func() {
		toxic := fmt.Sprintf(`{"name": "cut", "type": "limit_data", "stream": "downstream", "attributes": {"bytes": %d}}`, bytes)
		if _, err := link.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := link.Toxics.RemoveToxic(context.Background(), "cut"); err != nil {
				t.Error(err)
			}
		}
	}
}
