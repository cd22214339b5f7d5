package main

import (
	"bytes"
	"debug/buildinfo"
	"runtime/debug"
	"testing"
	"time"
)

func TestLapLeavesOutTheStart(t *testing.T) {
	t.Parallel()
	start := time.Now()
	began := beginning{usage: usage{at: start.Add(4 * time.Second), client: 6 * time.Second, kafka: time.Second}, records: 100}
	after := usage{at: start.Add(7 * time.Second), client: 8 * time.Second, kafka: 2 * time.Second}
	lap := began.until(after, drained{rows: 1100, elapsed: 6 * time.Second}, start)
	if lap.rows != 1000 || lap.elapsed != 2*time.Second || lap.client != 2*time.Second || lap.kafka != time.Second {
		t.Errorf("lap = %+v, want 1000 rows in 2 s, 2 s of the client's time and 1 s of Kafka's", lap)
	}
	if lap.speed() != 500 {
		t.Errorf("speed = %v, want 500", lap.speed())
	}
}

func TestLapsAreOfWaysThatHaveOne(t *testing.T) {
	t.Parallel()
	went := func(rows int) *way {
		of := lap{rows: rows, elapsed: 2 * time.Second, usage: usage{client: time.Second, postgres: 2 * time.Second, kafka: 3 * time.Second}}
		return &way{name: "way", went: []drained{{going: of}}}
	}
	var out bytes.Buffer
	ways{went(0), went(0), went(0), went(0), went(0), []*way{went(10_000)}}.printLaps(&stage{out: &out})
	const want = "\n### Drain: from the first record at the broker on\n\n" +
		"|  | rows/s | client CPU, µs/row | PostgreSQL CPU, µs/row | Kafka CPU, µs/row |\n| --- | --- | --- | --- | --- |\n" +
		"| way | 5,000 | 100.0 | 200.0 | 300.0 |\n"
	if out.String() != want {
		t.Errorf("laps:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestWatermillVersions(t *testing.T) {
	t.Parallel()
	info := &buildinfo.BuildInfo{Deps: []*debug.Module{
		{Path: "github.com/IBM/sarama", Version: "v1.2.3"},
		{Path: "github.com/ThreeDotsLabs/watermill", Version: "v1.5.0"},
		{Path: "github.com/ThreeDotsLabs/watermill-sql/v4", Version: "v4.1.0"},
		{Path: "github.com/jackc/pgx/v5", Version: "v5.0.0"},
	}}
	if got, want := watermillVersions(info), "sarama v1.2.3, watermill v1.5.0, watermill-sql v4.1.0"; got != want {
		t.Errorf("versions = %q, want %q", got, want)
	}
}
