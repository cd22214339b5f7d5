package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDebeziumVersions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{debeziumVersion, connectVersion} {
		if strings.Count(debeziumProject, "<version>"+version+"</version>") != 1 {
			t.Errorf("pom.xml does not have version %s once", version)
		}
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	const want = `bootstrap.servers=127.0.0.1:1,127.0.0.1:2
listeners=HTTP://127.0.0.1:8083
offset.storage.file.filename=/tmp/offsets
plugin.discovery=service_load
topic.creation.enable=false
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
`
	got := properties(connectWorker([]string{"127.0.0.1:1", "127.0.0.1:2"}, "127.0.0.1:8083", "/tmp/offsets"))
	if got != want {
		t.Errorf("worker:\n%s\nwant:\n%s", got, want)
	}
}

// What decides where Debezium reads, and what of a row becomes which part of a record.
func TestDebeziumConnector(t *testing.T) {
	t.Parallel()
	text := "\n" + properties(debeziumConnector(5432, "db7", "slot8", "events9"))
	for _, line := range []string{
		"database.port=5432", "database.dbname=db7", "slot.name=slot8", "publication.name=outbox", "plugin.name=pgoutput",
		"table.include.list=public.aksara_operation_outbox",
		"transforms.outbox.table.field.event.id=id",
		"transforms.outbox.table.field.event.key=operation_id",
		"transforms.outbox.table.field.event.payload=payload",
		"transforms.outbox.table.expand.json.payload=false",
		"transforms.outbox.route.topic.replacement=events9",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the connector's settings lack %s:\n%s", line, text)
		}
	}
	// The relay waits for all replicas in sync, and so does Connect by itself.
	if strings.Contains(text, "acks") || strings.ContainsAny(text, "\\!") {
		t.Errorf("the connector's settings change acks, or need escapes:\n%s", text)
	}
}

func TestConnectorSettingsAreTheSameByHTTP(t *testing.T) {
	t.Parallel()
	settings := debeziumConnector(5432, "db7", "slot8", "events9")
	var got map[string]string
	if err := json.Unmarshal(connectConfig(settings), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(settings) {
		t.Errorf("%d settings of %d: one is given twice", len(got), len(settings))
	}
	for _, s := range settings {
		if got[s[0]] != s[1] {
			t.Errorf("%s=%s, want %s", s[0], got[s[0]], s[1])
		}
	}
}

func TestConnectFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ status, says string }{
		"running":      {`{"name":"outbox","connector":{"state":"RUNNING"},"tasks":[{"id":0,"state":"RUNNING"}]}`, ""},
		"stopped":      {`{"name":"outbox","connector":{"state":"STOPPED"},"tasks":[]}`, ""},
		"task":         {`{"connector":{"state":"RUNNING"},"tasks":[{"state":"RUNNING"},{"state":"FAILED","trace":"no slot\n\tat A"}]}`, "no slot"},
		"connector":    {`{"connector":{"state":"FAILED","trace":"no table"},"tasks":[]}`, "no table"},
		"no such form": {`<html>`, "status of the connector"},
	} {
		err := connectFailure([]byte(test.status))
		if (err != nil) != (test.says != "") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "at A")) {
			t.Errorf("%s: %v, want %q and no trace", name, err, test.says)
		}
	}
}
