package relay_test

import (
	"strings"
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*relay.Config)
		faults []string // what the error names; none if there is none
	}{
		{"defaults", func(*relay.Config) {}, nil},
		{"no namespace", func(c *relay.Config) { c.Namespace = "" }, []string{"namespace"}},
		{"the delivery time-out just fits", func(c *relay.Config) { c.DeliveryTimeout = 12*time.Second - 1 }, nil},
		{"the delivery time-out is too long", func(c *relay.Config) { c.DeliveryTimeout = 12 * time.Second }, []string{"delivery timeout", "lease"}},
		{"the lease is too short", func(c *relay.Config) { c.Lease = time.Second }, []string{"delivery timeout", "lease"}},
		{"negative lease", func(c *relay.Config) { c.Lease = -time.Hour }, []string{"lease"}},
		{"negative durations", func(c *relay.Config) {
			c.DeliveryTimeout, c.RetryDelay, c.RetryMaxDelay, c.PollInterval, c.Grace = -1, -1, -1, -1, -1
		}, []string{"delivery timeout", "retry delay", "longest retry delay", "poll interval", "grace"}},
		{"no rows", func(c *relay.Config) { c.BatchRows = -1 }, []string{"batch rows"}},
		{"no bytes", func(c *relay.Config) { c.BatchBytes = -1 }, []string{"batch bytes"}},
		{"no workers", func(c *relay.Config) { c.Workers = -1 }, []string{"workers"}},
	} {
		config := relay.Config{Namespace: namespace}
		c.change(&config)
		_, err := relay.New(config, &relaytest.Store{}, &relaytest.Sink{}, nil)
		if (err != nil) != (c.faults != nil) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, fault := range c.faults {
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: the error does not name %q: %v", c.name, fault, err)
			}
		}
	}
}
