package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"outboxrelay/internal/settings"
	"outboxrelay/verify"
)

// progressEvery is between two lines about a verification that takes its time.
const progressEvery = 5 * time.Second

// verifyAnswer is what "relay verify --json" prints.
type verifyAnswer struct {
	Result   string          `json:"result"` // ok, warn or fault
	Rows     int64           `json:"rows"`
	Records  int64           `json:"records"`
	Passes   int             `json:"passes"`
	Findings []verifyFinding `json:"findings"`
}

type verifyFinding struct {
	Kind     string          `json:"kind"`
	Level    string          `json:"level"`
	Count    int64           `json:"count"`
	Meaning  string          `json:"meaning"`
	Examples []verifyExample `json:"examples"`
}

// verifyExample has what is known of one thing that was found.
type verifyExample struct {
	Event     string       `json:"event,omitempty"`
	Operation string       `json:"operation,omitempty"`
	Tenant    *string      `json:"tenant,omitempty"`     // absent outside any tenant
	NonTenant bool         `json:"non_tenant,omitempty"` // the non-tenant scope
	Row       int64        `json:"row,omitempty"`
	Record    *verifyPlace `json:"record,omitempty"`
	Detail    string       `json:"detail,omitempty"`
}

type verifyPlace struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// verify compares the topics with the table.
func (a *app) verify(ctx context.Context, args []string) error {
	s, asJSON, err := a.reporting("verify", args)
	if err != nil {
		return err
	}
	db, err := openStore(s)
	if err != nil {
		return err
	}
	defer db.Close()
	kafka, err := connection(s, nil).Options()
	if err != nil {
		return err
	}
	result, err := verify.Run(ctx, verify.Config{
		Namespace: s.Namespace, Scopes: s.Scopes, Topic: topicOf(s), ExactlyOnce: s.Delivery == settings.ExactlyOnce,
		Database: db.Pool(), Schema: s.Database.Schema, Kafka: kafka,
		Progress: tellProgress(a.stderr),
	})
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(a.stdout).Encode(toVerifyAnswer(result))
	} else {
		err = a.printVerified(result)
	}
	if err == nil && result.Level() == verify.Fault {
		err = errFaultFound
	}
	return err
}

// tellProgress writes a line now and then.
func tellProgress(w io.Writer) func(verify.Progress) {
	last := time.Now()
	return func(p verify.Progress) {
		if time.Since(last) >= progressEvery {
			last = time.Now()
			fmt.Fprintf(w, "pass %d of %d: compared %d rows and %d records so far\n", p.Pass, p.Passes, p.Rows, p.Records)
		}
	}
}

// printVerified writes a line for each finding and for each of its examples.
func (a *app) printVerified(result *verify.Result) error {
	level := a.levels(len("fault"))
	_, err := fmt.Fprintf(a.stdout, "%s  compared %d rows with %d records\n", level(verifyResult(result)), result.Rows, result.Records)
	for _, f := range result.Findings {
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "%s  %s: %d %s\n", level(f.Level.String()), f.Kind, f.Count, f.Meaning)
		}
		for _, e := range f.Examples {
			if err == nil {
				_, err = fmt.Fprintf(a.stdout, "         %s\n", printable(e.String()))
			}
		}
	}
	return err
}

// verifyResult is the verdict in a word.
func verifyResult(result *verify.Result) string {
	if level := result.Level(); level != verify.Information {
		return level.String()
	}
	return "ok"
}

func toVerifyAnswer(result *verify.Result) verifyAnswer {
	answer := verifyAnswer{
		Result: verifyResult(result), Rows: result.Rows, Records: result.Records, Passes: result.Passes, Findings: []verifyFinding{},
	}
	for _, f := range result.Findings {
		finding := verifyFinding{Kind: string(f.Kind), Level: f.Level.String(), Count: f.Count, Meaning: f.Meaning}
		for _, e := range f.Examples {
			finding.Examples = append(finding.Examples, toVerifyExample(e))
		}
		answer.Findings = append(answer.Findings, finding)
	}
	return answer
}

func toVerifyExample(e verify.Example) verifyExample {
	out := verifyExample{Event: e.Event(), Row: e.Row, Detail: e.Detail}
	if out.Event == "" && e.Operation != [16]byte{} {
		out.Operation = e.Operation.String()
	}
	if id, ok := e.Scope.Tenant(); ok {
		out.Tenant = &id
	}
	out.NonTenant = e.Scope.Valid() && out.Tenant == nil
	if e.Record.Topic != "" {
		out.Record = &verifyPlace{e.Record.Topic, e.Record.Partition, e.Record.Offset}
	}
	return out
}
