package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// table is one of the report's.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print prints the table as Markdown.
func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n### %s\n\n", t.title)
	line := func(cells []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	line(strings.Split(strings.Repeat("--- ", len(t.head)-1)+"---", " "))
	for _, row := range t.rows {
		line(row)
	}
}

// target is a figure that was promised.
type target struct {
	what, wanted, measured string
	met                    bool
}

func atLeast(what string, measured, wanted float64, format func(float64) string) target {
	return target{what, "at least " + format(wanted), format(measured), measured >= wanted}
}

func atMost(what string, measured, wanted float64, format func(float64) string) target {
	return target{what, "at most " + format(wanted), format(measured), measured <= wanted}
}

func printTargets(out io.Writer, targets []target) {
	t := table{title: "Targets", head: []string{"", "wanted", "measured (median)", "met"}}
	for _, goal := range targets {
		met := "no"
		if goal.met {
			met = "yes"
		}
		t.add(goal.what, goal.wanted, goal.measured, met)
	}
	t.print(out)
}

// introduce says what was measured on, with which versions and settings.
func (s *stage) introduce(ctx context.Context) error {
	var version string
	err := s.connected(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select current_setting('server_version')`).Scan(&version)
	})
	if err != nil {
		return err
	}
	brokers, err := s.admin.ApiVersions(ctx)
	if err != nil {
		return err
	}
	settings := "defaults"
	if given := tried(); len(given) > 0 {
		settings = strings.Join(given, " ")
	}
	t := table{title: "Measured " + time.Now().Format(time.DateOnly), head: []string{"", ""}}
	t.add("machine", fmt.Sprintf("%d cores, %s, %s of memory, %s", runtime.NumCPU(), fact("/proc/cpuinfo", "model name"), memory(), runtime.GOOS+"/"+runtime.GOARCH))
	t.add("PostgreSQL", version+", as shipped and "+strings.Join(s.postgresSettings(), ", "))
	t.add("Kafka", fmt.Sprintf("%s, one broker, %d partitions, 1 GiB of heap", brokers.Sorted()[0].VersionGuess(), partitions))
	t.add("Go, franz-go, pgx", strings.Join([]string{runtime.Version(), module("github.com/twmb/franz-go"), module("github.com/jackc/pgx/v5")}, ", "))
	t.add("relay's settings", settings)
	if s.peers {
		program, err := buildinfo.ReadFile(s.watermill)
		if err != nil {
			return err
		}
		t.add("Debezium", fmt.Sprintf("%s on Kafka Connect %s, %s", debeziumVersion, connectVersion, connectHeap))
		t.add("Watermill", fmt.Sprintf("%s; %s rows a query", watermillVersions(program), whole(watermillBatch)))
	}
	t.add("runs", fmt.Sprintf("%d; figures are medians (least to most)", s.runs))
	t.print(s.out)
	return nil
}

// module is the version of one that this program was built with.
func module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}

// fact is the first value of a name in a file of /proc.
func fact(file, name string) string {
	content, _ := os.ReadFile(file) // what can't be read is unknown
	for line := range strings.Lines(string(content)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() string {
	var kibibytes float64
	if _, err := fmt.Sscan(fact("/proc/meminfo", "MemTotal"), &kibibytes); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f GiB", kibibytes/(1<<20))
}
