package kafkaserver

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestListeners(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node *node
		want []string
	}{
		"broker and controller": {
			&node{id: 1, ports: ports{clients: 1001, internal: 1002, controller: 1003}},
			[]string{
				"node.id=1",
				"process.roles=broker,controller",
				"listeners=CLIENTS://127.0.0.1:1001,INTERNAL://127.0.0.1:1002,CONTROLLER://127.0.0.1:1003",
				"advertised.listeners=CLIENTS://127.0.0.1:1001,INTERNAL://127.0.0.1:1002",
			},
		},
		"broker behind a proxy": {
			&node{id: 2, ports: ports{clients: 1001, internal: 1002, advertised: 2001}},
			[]string{
				"node.id=2",
				"process.roles=broker",
				"listeners=CLIENTS://127.0.0.1:1001,INTERNAL://127.0.0.1:1002",
				"advertised.listeners=CLIENTS://127.0.0.1:2001,INTERNAL://127.0.0.1:1002",
			},
		},
		"controller": {
			&node{id: 100, ports: ports{controller: 1003}},
			[]string{
				"node.id=100",
				"process.roles=controller",
				"listeners=CONTROLLER://127.0.0.1:1003",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.node.listeners(); !slices.Equal(got, test.want) {
				t.Errorf("listeners:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestOnlyOneOrThreeBrokers(t *testing.T) {
	t.Parallel()
	for _, brokers := range []int{-1, 2, 4} {
		var c Cluster
		if err := c.plan(Options{Brokers: brokers}, machine{}); err == nil {
			t.Errorf("a plan with %d brokers was accepted", brokers)
		}
	}
}

func TestClusterIDIsNoOption(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[A-Za-f][A-Za-z0-9_-]{21}$`)
	for range 1000 {
		if id := newClusterID(); !form.MatchString(id) {
			t.Fatalf("cluster id %q, want %s", id, form)
		}
	}
}
