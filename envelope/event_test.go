package envelope

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNewTakesTheRowsTime(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 2*60*60)
	for name, test := range map[string]struct {
		created time.Time
		want    string // ce_time
	}{
		"another zone":       {time.Date(2026, 3, 1, 1, 30, 0, 5000, zone), "2026-02-28T23:30:00.000005Z"},
		"nanoseconds":        {time.Date(2026, 3, 1, 0, 0, 0, 1999, time.UTC), "2026-03-01T00:00:00.000001Z"},
		"before 1970":        {time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC), "1969-12-31T23:59:59.999999Z"},
		"first instant":      {time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), "0001-01-01T00:00:00.000000Z"},
		"last instant":       {time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), "9999-12-31T23:59:59.999999Z"},
		"year 1 only in UTC": {time.Date(0, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -60*60)), "0001-01-01T00:00:00.000000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, err := New("billing", NonTenant(), testOperation, testType, test.created, payload(1))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(header(event.Record(), HeaderTime)); got != test.want {
				t.Errorf("ce_time = %s, want %s", got, test.want)
			}
		})
	}
}

func TestNewFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		typ     string
		created time.Time
		reason  string
	}{
		"empty type":            {"", testTime, "topic column is empty"},
		"infinity":              {testType, time.Date(294277, 1, 1, 0, 0, 0, 0, time.UTC), "created_at"},
		"minus infinity":        {testType, time.Date(-4714, 1, 1, 0, 0, 0, 0, time.UTC), "created_at"},
		"year 10000":            {testType, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "created_at"},
		"year 0":                {testType, time.Date(0, 12, 31, 23, 59, 59, 999999999, time.UTC), "created_at"},
		"year 10000 in UTC":     {testType, time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -60*60)), "created_at"},
		"year 0 in UTC":         {testType, time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 60*60)), "created_at"},
		"latest of time.Time":   {testType, time.Unix(1<<62, 999999999), "created_at"},
		"earliest of time.Time": {testType, time.Unix(-1<<62, 0), "created_at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New("billing", NonTenant(), testOperation, test.typ, test.created, payload(1))
			checkFault(t, err, test.reason)
		})
	}
}

func TestIDAndSourceAreTheHeaders(t *testing.T) {
	t.Parallel()
	event := testEvent(t)
	record := event.Record()
	if got, want := event.ID(), string(header(record, HeaderID)); got != want {
		t.Errorf("ID = %q, the header is %q", got, want)
	}
	if got, want := event.Source(), string(header(record, HeaderSource)); got != want {
		t.Errorf("Source = %q, the header is %q", got, want)
	}
}

// checkFault checks that err is a row fault of that reason that shows nothing of the payloads here.
func checkFault(t *testing.T, err error, reason string) {
	t.Helper()
	var fault *Fault
	if !errors.As(err, &fault) || !strings.Contains(fault.Reason, reason) {
		t.Fatalf("error is %v, want a fault with %q", err, reason)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the fault shows payload: %v", err)
	}
}

func header(r Record, name string) []byte {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value
		}
	}
	return nil
}
