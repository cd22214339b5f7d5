package main

import (
	"bytes"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tab := table{title: "Speed", head: []string{"", "rows/s"}}
	tab.add("relay", "20,000")
	tab.print(&out)
	const want = "\n### Speed\n\n|  | rows/s |\n| --- | --- |\n| relay | 20,000 |\n"
	if out.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printTargets(&out, []target{atLeast("speed", 20_000, 15_000, whole), atMost("memory", 65, 64, tenths)})
	const want = "\n### Targets\n\n|  | wanted | measured (median) | met |\n| --- | --- | --- | --- |\n" +
		"| speed | at least 15,000 | 20,000 | yes |\n| memory | at most 64.0 | 65.0 | no |\n"
	if out.String() != want {
		t.Errorf("targets:\n%s\nwant:\n%s", out.String(), want)
	}
}
