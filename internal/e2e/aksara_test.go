package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/relayproc"
)

// Rows written by a real Aksara, of all its twelve events, go to a real broker: exactly
// those of the configured scopes, as a consumer sees them that shares no code with the
// relay, byte for byte. On the plain schema and with the supporting index.
func TestRealAksara(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"plain", "indexed"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, aksaratest.Setup(t))
			if variant == "plain" {
				f.DB.Exec(t, "drop index relay_outbox_operation")
			}
			realAksara(t, f)
		})
	}
}

func realAksara(t *testing.T, f *fixture) {
	const oddTenant = "caf\u00e9 / 100% \"x\":y"
	scopes := []string{"acme", oddTenant, aksaratest.NonTenant, "not-configured"}
	ours := aksaratest.Generate(t, f.DB.URL, aksaratest.GenerateOptions{
		Namespace: relayproc.Namespace, Scopes: scopes, Counts: aksaratest.EachKind(2), FailureCodes: []string{"", "a \"b\" <&> \u2028 \u00e9"},
	})
	aksaratest.Generate(t, f.DB.URL, aksaratest.GenerateOptions{
		Namespace: "ORDERS", Scopes: scopes[:1], Counts: aksaratest.EachKind(1),
	})
	states := aksaratest.OperationsState(t, f.DB.URL)
	const configured = `tenant_scope <> 'not-configured' and
		(select application_namespace from aksara_operations p where p.id = operation_id) = 'orders'`
	foreign := f.rows("not (" + configured + ")")
	wanted := expect(t, f, configured)

	tenants, err := json.Marshal(scopes[:2])
	if err != nil {
		t.Fatal(err)
	}
	p := relayproc.Start(t, f.Env(string(tenants), map[string]string{"RELAY_NON_TENANT": "true"}))
	f.Drained(configured)
	p.Stop()

	got := aksaratest.Consume(t, strings.Join(f.Broker.Addrs, ","), aksaratest.ReadOptions{Topic: f.Topic, Count: len(wanted)})
	compare(t, wanted, got)
	sequences(t, f, ours, "not-configured")
	if after := f.rows("not (" + configured + ")"); fmt.Sprint(after) != fmt.Sprint(foreign) {
		t.Error("rows of other scopes or namespaces changed")
	}
	if after := aksaratest.OperationsState(t, f.DB.URL); !slices.Equal(after, states) {
		t.Error("operations changed")
	}
	cloudEvents(t, f, len(wanted))
}

// expect builds what each outbox row must look like on the wire from the tables alone,
// with none of the relay's code.
func expect(t *testing.T, f *fixture, where string) map[string]aksaratest.Record {
	t.Helper()
	result, err := f.Pool.Query(t.Context(), `select o.operation_id::text, t.state_version::text, o.payload::text, o.topic, o.tenant_scope,
		to_char(o.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
		from aksara_operation_outbox o join aksara_operation_transitions t on t.id = o.transition_id where `+
		strings.ReplaceAll(strings.ReplaceAll(where, "tenant_scope", "o.tenant_scope"), "= operation_id", "= o.operation_id"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]aksaratest.Record{}
	for result.Next() {
		var operation, version, payload, typ, scope, created string
		if err := result.Scan(&operation, &version, &payload, &typ, &scope, &created); err != nil {
			t.Fatal(err)
		}
		source := "/namespaces/" + relayproc.Namespace
		if scope != aksaratest.NonTenant {
			source += "/tenants/" + strings.ReplaceAll(url.QueryEscape(scope), "+", "%20")
		}
		headers := [][2]string{
			{"content-type", "application/json"}, {"ce_specversion", "1.0"}, {"ce_id", operation + ":" + version},
			{"ce_source", source}, {"ce_type", typ}, {"ce_subject", operation}, {"ce_time", created},
			{"ce_partitionkey", operation}, {"ce_namespace", relayproc.Namespace},
		}
		if scope != aksaratest.NonTenant {
			headers = append(headers, [2]string{"ce_tenant", scope})
		}
		headers = append(headers, [2]string{"ce_stateversion", version}, [2]string{"ce_envelope", "1"})
		record := aksaratest.Record{Key: []byte(operation), Value: []byte(payload)}
		for _, h := range headers {
			record.Headers = append(record.Headers, aksaratest.Header{Name: h[0], Value: []byte(h[1])})
		}
		all[operation+":"+version] = record
	}
	if result.Err() != nil {
		t.Fatal(result.Err())
	}
	return all
}

// compare fails unless the topic holds exactly the wanted records, each once.
func compare(t *testing.T, wanted map[string]aksaratest.Record, got []aksaratest.Record) {
	t.Helper()
	if len(got) != len(wanted) {
		t.Errorf("%d records came, want %d", len(got), len(wanted))
	}
	seen := map[string]bool{}
	for _, r := range got {
		if len(r.Headers) < 3 {
			t.Fatalf("a record has %d headers", len(r.Headers))
		}
		id := string(r.Headers[2].Value)
		want, ok := wanted[id]
		if !ok || seen[id] {
			t.Errorf("event %s came twice or isn't wanted", id)
			continue
		}
		seen[id] = true
		if !bytes.Equal(r.Key, want.Key) || !bytes.Equal(r.Value, want.Value) {
			t.Errorf("event %s: key or value differs:\n%s %s\nwant\n%s %s", id, r.Key, r.Value, want.Key, want.Value)
		}
		if fmt.Sprintf("%s", r.Headers) != fmt.Sprintf("%s", want.Headers) {
			t.Errorf("event %s: headers\n%s\nwant\n%s", id, r.Headers, want.Headers)
		}
		if age := time.Since(time.UnixMilli(r.Timestamp)); age < 0 || age > 10*time.Minute {
			t.Errorf("event %s: timestamp is %s old, want the time of sending", id, age)
		}
	}
}

// sequences fails unless the events of each operation came in the order that Aksara
// wrote them, and together were all twelve.
func sequences(t *testing.T, f *fixture, operations []aksaratest.Operation, except string) {
	t.Helper()
	events := f.Events()
	relayproc.InOrder(t, events)
	came := map[string][]string{}
	for _, e := range events {
		var payload struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(e.Data, &payload); err != nil {
			t.Fatal(err)
		}
		came[e.OperationID.String()] = append(came[e.OperationID.String()], payload.Event)
	}
	kinds := map[string]bool{}
	for _, op := range operations {
		if op.Scope == except {
			if came[op.ID] != nil {
				t.Errorf("operation %s of a scope that isn't configured came", op.ID)
			}
			continue
		}
		var want []string
		for _, transition := range op.Transitions {
			want = append(want, transition.Event)
			kinds[transition.Event] = true
		}
		if !slices.Equal(came[op.ID], want) {
			t.Errorf("operation %s (%s): events %v, want %v", op.ID, op.Kind, came[op.ID], want)
		}
	}
	if len(kinds) != 12 {
		t.Errorf("%d kinds of events were written, want 12: %v", len(kinds), slices.Sorted(maps.Keys(kinds)))
	}
}

// cloudEvents reads the topic with a CloudEvents SDK of another language.
func cloudEvents(t *testing.T, f *fixture, want int) {
	t.Helper()
	events := aksaratest.ReadCloudEvents(t, strings.Join(f.Broker.Addrs, ","), aksaratest.ReadOptions{Topic: f.Topic, Count: want})
	if len(events) != want {
		t.Errorf("the SDK read %d events, want %d", len(events), want)
	}
	for _, e := range events {
		a := e.Attributes
		if a["specversion"] != "1.0" || a["id"] != a["subject"]+":"+a["stateversion"] || a["namespace"] != relayproc.Namespace ||
			a["partitionkey"] != a["subject"] || a["type"] != "aksara.operation.transition" || len(e.Data) == 0 {
			t.Errorf("the SDK read %v", a)
		}
	}
}

// The payload that a consumer gets is what Aksara's own exporter hands its sink.
func TestPayloadsAreTheExporters(t *testing.T) {
	t.Parallel()
	f := newFixture(t, aksaratest.Setup(t))
	aksaratest.Generate(t, f.DB.URL, aksaratest.GenerateOptions{Namespace: relayproc.Namespace, Scopes: []string{"acme"}, Counts: aksaratest.EachKind(2)})
	p := relayproc.Start(t, f.Env("acme"))
	f.Drained("true")
	p.Stop()

	// Aksara's exporter gets the same rows, as they were. It locks the operations as well,
	// which the relay's role may not.
	f.DB.Exec(t, "update aksara_operation_outbox set exported_at = null, export_attempts = 0")
	observed := aksaratest.Export(t, f.DB.URL, aksaratest.ExporterOptions{Namespace: relayproc.Namespace, Scope: "acme", UntilEmpty: true})
	var handed, delivered []string
	for _, o := range observed {
		handed = append(handed, o.Canonical)
	}
	for _, r := range f.Records() {
		delivered = append(delivered, canonical(t, r.Value))
	}
	slices.Sort(handed)
	slices.Sort(delivered)
	if len(handed) == 0 || !slices.Equal(handed, delivered) {
		t.Errorf("the exporter handed over %d payloads, the relay delivered %d, and they differ:\n%.2000q\n%.2000q",
			len(handed), len(delivered), handed, delivered)
	}
}

// canonical is JSON without blanks and with sorted names; numbers keep their digits.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// A relay and Aksara's own exporter work on the same rows while an application writes
// them: each row is delivered by one of them, and neither takes what the other holds.
func TestBesideThePythonExporter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, aksaratest.Setup(t))
	exporters := []*aksaratest.Exporter{}
	for i := range 2 {
		exporters = append(exporters, aksaratest.StartExporter(t, f.DB.URL, aksaratest.ExporterOptions{
			Namespace: relayproc.Namespace, Scope: "acme", WorkerID: fmt.Sprintf("python-%d", i),
		}))
	}
	relayproc.Start(t, f.Env("acme", map[string]string{"RELAY_BATCH_ROWS": "20"}))
	aksaratest.Generate(t, f.DB.URL, aksaratest.GenerateOptions{Namespace: relayproc.Namespace, Scopes: []string{"acme"}, Counts: aksaratest.EachKind(30)})
	f.Drained("true")

	byPython := map[string]int{}
	for _, e := range exporters {
		for _, o := range e.Stop() {
			byPython[o.Canonical]++
		}
	}
	byRelay := map[string]int{}
	for _, e := range f.Events() {
		byRelay[canonical(t, e.Data)]++
	}
	total := map[string]int{}
	for payload, n := range byPython {
		total[payload] += n
	}
	for payload, n := range byRelay {
		total[payload] += n
	}
	for payload, n := range total {
		if n != 1 {
			t.Errorf("%d deliveries of %s", n, payload)
		}
	}
	if want := f.Count("select count(*) from aksara_operation_outbox"); len(total) != want {
		t.Errorf("%d events were delivered, want %d", len(total), want)
	}
	if len(byPython) == 0 || len(byRelay) == 0 {
		t.Errorf("the relay delivered %d and Python %d: want both to have a share", len(byRelay), len(byPython))
	}
}

// A row that Aksara's exporter holds is not taken by the relay, nor are later rows of its
// operation; other operations go on.
func TestRowsThatThePythonExporterHolds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, aksaratest.Setup(t))
	aksaratest.Generate(t, f.DB.URL, aksaratest.GenerateOptions{
		Namespace: relayproc.Namespace, Scopes: []string{"acme"}, Counts: map[aksaratest.Kind]int{aksaratest.Success: 2},
	})
	python := aksaratest.StartExporter(t, f.DB.URL, aksaratest.ExporterOptions{
		Namespace: relayproc.Namespace, Scope: "acme", WorkerID: "python", Claim: 10 * time.Minute, Hold: true, Calls: 1,
	})
	python.WaitObserved(1)
	relayproc.Start(t, f.Env("acme"))
	const held = "operation_id = (select operation_id from aksara_operation_outbox where claimed_by = 'python')"
	f.Drained("not " + held)
	if n := f.Count("select count(*) from aksara_operation_outbox where export_attempts > 0 and exported_at is null"); n != 1 {
		t.Errorf("%d rows of the held operation were claimed, want the exporter's one", n)
	}
	python.Release()
	python.Wait()
	f.Drained("true")
	if got := len(f.Events()); got != 5 {
		t.Errorf("the relay delivered %d events, want 5", got)
	}
	var scopes []envelope.Scope
	for _, e := range f.Events() {
		scopes = append(scopes, e.Scope)
	}
	if len(slices.Compact(scopes)) != 1 {
		t.Errorf("events of several scopes came: %v", scopes)
	}
}
