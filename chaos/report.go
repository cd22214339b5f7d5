package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"outboxrelay/internal/moments"
)

// table is one of the report's.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.rows = append(t.rows, row)
}

// print prints the table as Markdown.
func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n### %s\n\n", t.title)
	line := func(cells []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	line(slices.Repeat([]string{"---"}, len(t.head)))
	for _, row := range t.rows {
		line(row)
	}
}

// report prints what was done and what came of it.
func (s *stage) report(out io.Writer, h history, f *findings) {
	s.introduce(out)
	perKind(out, h, f)
	perMoment(out, h, s.instants())
	totals(out, h, f)
}

func (s *stage) introduce(out io.Writer) {
	t := table{title: fmt.Sprintf("Seed %d, %v, %s", s.seed, s.duration, time.Now().Format(time.DateOnly)), head: []string{"", ""}}
	t.add("machine", fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), processor(), runtime.GOOS+"/"+runtime.GOARCH))
	t.add("relays", fmt.Sprintf("%d, two of them with one worker id; lease %v, delivery timeout %v, retries after 0.5 to 5 s, 100 rows a claim", len(s.relays), lease, deliveryTimeout))
	t.add("delivery", s.delivery)
	t.add("servers", fmt.Sprintf("1 PostgreSQL (durable), %d Kafka brokers and a controller; %d partitions, %d replicas, min.insync.replicas=2", brokers, partitions, brokers))
	t.add("application", fmt.Sprintf("%d transitions a second, %d scopes, operations of 1 to %d transitions and some of up to %d", s.rate, len(scopes()), longest, 20*longest))
	t.add("Go, franz-go, pgx", strings.Join([]string{runtime.Version(), module("github.com/twmb/franz-go"), module("github.com/jackc/pgx/v5")}, ", "))
	t.print(out)
}

func perKind(out io.Writer, h history, f *findings) {
	blames, _ := attribute(f.verdict.duplicates, h.faults)
	t := table{title: "Faults", head: []string{"fault", "times", "duplicates that only it explains", "duplicates that others explain too",
		"flowing again, median", "longest", "all delivered, median", "longest"}}
	for i, k := range kinds {
		var flow, all []time.Duration
		for _, fault := range h.faults {
			if fault.kind == i {
				r := recovered(fault.ended, f.rows)
				flow, all = append(flow, r.flow), append(all, r.all)
			}
		}
		if len(flow) == 0 {
			t.add(k.name, 0, "", "", "", "", "", "")
			continue
		}
		t.add(k.name, len(flow), blames[i].alone, blames[i].among, median(flow), seconds(slices.Max(flow)), median(all), seconds(slices.Max(all)))
	}
	t.print(out)
	fmt.Fprintln(out, `
Flowing again: from a fault's end (a server's end is when it serves again) until each scope that had events waiting got one
exported, the slowest scope's time. All delivered: until everything committed before the fault's end was exported. Other faults
go on meanwhile and count as well. A duplicate is put down to each kind of which a fault struck within 1.5 s after its first
delivery, and so can have kept it from being marked: one of a server or network that went on, one of a relay that began. If there
is none, 5 s count, and if there is none then either, every fault that went on within a lease before the second delivery.`)
}

// perMoment prints how often relays were killed at each moment.
func perMoment(out io.Writer, h history, instants []moments.Moment) {
	t := table{title: "Killed at chosen moments", head: []string{"statement or request", "moment", "times"}}
	times := map[moments.Moment]int{}
	for _, f := range h.faults {
		if k := kinds[f.kind]; k.kills && k.atMoment != nil {
			times[f.moment]++
		}
	}
	for _, m := range instants {
		t.add(m.What, m.Stage, times[m])
	}
	t.print(out)
}

func totals(out io.Writer, h history, f *findings) {
	v := f.verdict
	_, unexplained := attribute(v.duplicates, h.faults)
	t := table{title: "Totals", head: []string{"", ""}}
	t.add("faults", fmt.Sprintf("%d (%d found no room, or not their moment)", len(h.faults), h.skipped))
	t.add("relays killed", killed(h.faults))
	t.add("relays that ended by themselves, or not when asked", len(f.crashes))
	t.add("transitions committed", fmt.Sprintf("%d (%d transactions of the application failed)", v.events, h.failed))
	t.add("operations whose transitions the database lost", f.missing)
	t.add("records", v.records)
	t.add("**lost**", v.lost)
	t.add("**out of order**", v.reordered)
	t.add("**parked**", v.parked)
	t.add("**malformed, wrong scope, unknown**", fmt.Sprintf("%d, %d, %d", v.malformed, v.crossed, v.unknown))
	t.add("not exported in the end", v.left)
	t.add("duplicates", fmt.Sprintf("%d, %d of them without a fault", len(v.duplicates), unexplained))
	if f.ledgerEnds > 0 {
		t.add("ledger", fmt.Sprintf("%d entries left by compaction, of %d offsets", f.entries, f.ledgerEnds))
	}
	t.add("until all was exported after the last fault", seconds(h.drained))
	t.print(out)

	t = table{title: "relay verify", head: []string{"finding", "level", "count"}}
	for _, finding := range f.verified.Findings {
		t.add(finding.Kind, finding.Level, finding.Count)
	}
	t.add(fmt.Sprintf("compared %d rows with %d records", f.verified.Rows, f.verified.Records), "", "")
	t.print(out)
}

// killed counts kill -9 of relays.
func killed(faults []happened) (n int) {
	for _, f := range faults {
		if kinds[f.kind].kills {
			n++
		}
	}
	return n
}

func median(values []time.Duration) string {
	sorted := slices.Sorted(slices.Values(values))
	return seconds((sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// module is the version of one that this program was built with.
func module(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}

func processor() string {
	content, _ := os.ReadFile("/proc/cpuinfo") // what can't be read is unknown
	for line := range strings.Lines(string(content)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
