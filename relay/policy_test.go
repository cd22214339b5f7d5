package relay

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// latest makes jitter the whole wait.
func latest() float64 { return 1 }

const (
	testRetry    = 5 * time.Second
	testMaxRetry = 5 * time.Minute
)

func testPolicy() policy {
	return policy{retry: testRetry, maxRetry: testMaxRetry, random: latest}
}

// written is a verdict without its row: that of the row with index i.
type written struct {
	i int
	Verdict
}

// TestVerdicts has one letter for each row, which names its operation, and the answers
// to the rows at one or two settlements. "?" stands for an answer that did not come.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	answer := map[byte]error{
		'+': nil,
		'!': RowFault.Wrap(errors.New("bad")),
		'e': Environment.Wrap(errors.New("away")),
		'f': Failed.Wrap(errors.New("refused")),
		'x': errors.New("refused"), // without a class
		'-': errBehind,
		'u': Unknown.Wrap(errors.New("who knows")),
		'?': errNoAnswer,
	}
	exported := Verdict{Exported: true}
	parked := Verdict{Wait: Park, Error: "bad"}
	environment := Verdict{Wait: testRetry, Error: "away"}
	failed := Verdict{Wait: testRetry, Error: "refused"}
	behind := func(wait time.Duration) Verdict { return Verdict{Wait: wait, Refund: true} }
	back := behind(KeepDue)

	for _, c := range []struct {
		name, rows, before, now string
		want                    []written
	}{
		{"delivered", "a", "", "+", []written{{0, exported}}},
		{"row fault", "a", "", "!", []written{{0, parked}}},
		{"environment", "a", "", "e", []written{{0, environment}}},
		{"failed", "a", "", "f", []written{{0, failed}}},
		{"no class", "a", "", "x", []written{{0, failed}}},
		{"not attempted", "a", "", "-", []written{{0, back}}},
		{"unknown", "a", "", "u", nil},
		{"no answer", "a", "", "?", nil},

		{"behind delivered", "aa", "", "+f", []written{{0, exported}, {1, failed}}},
		{"behind a row fault", "aa", "", "!-", []written{{0, parked}, {1, behind(24 * time.Hour)}}},
		{"behind environment", "aaa", "", "e--", []written{{0, environment}, {1, behind(testRetry)}, {2, behind(testRetry)}}},
		{"behind failed", "aa", "", "f-", []written{{0, failed}, {1, behind(testRetry)}}},
		{"behind not attempted", "aa", "", "--", []written{{0, back}, {1, back}}},
		{"behind unknown", "aaa", "", "?--", []written{{1, back}, {2, back}}},
		{"delivered behind failed", "aaa", "", "f+-", []written{{0, failed}, {1, exported}, {2, behind(testRetry)}}},
		{"the first failure decides", "aaa", "", "fe!", []written{{0, failed}, {1, behind(testRetry)}, {2, behind(testRetry)}}},
		{"a row fault behind unknown is not parked", "aa", "", "?!", []written{{1, back}}},
		{"an unknown between", "aaa", "", "f?-", []written{{0, failed}, {2, behind(testRetry)}}},

		{"neighbours", "abab", "", "!++-", []written{{0, parked}, {1, exported}, {2, exported}, {3, back}}},
		{"neighbours in turn", "abab", "", "f?-+", []written{{0, failed}, {2, behind(testRetry)}, {3, exported}}},

		{"later: delivered", "aa", "+?", "++", []written{{1, exported}}},
		{"later: failed", "aa", "+?", "+f", []written{{1, failed}}},
		{"later: nothing new", "ab", "+?", "+?", nil},
		{"later: the head failed, those behind were given back", "aa", "?-", "f-", []written{{0, failed}}},
		{"later: behind a former failure", "aa", "f?", "f-", []written{{1, behind(testRetry)}}},
		{"later: behind a former failure, unknown to the end", "aa", "f?", "f?", nil},
		{"later: behind a former row fault", "aa", "!?", "!-", []written{{1, behind(24 * time.Hour)}}},
		{"later: unknown for good", "a", "?", "u", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rows, now := testRows(c.rows), make([]error, len(c.now))
			var before []error
			for i := range c.now {
				now[i] = answer[c.now[i]]
				if c.before != "" {
					before = append(before, answer[c.before[i]])
				}
			}
			got := testPolicy().verdicts(rows, now, before)
			if len(got) != len(c.want) {
				t.Fatalf("got %d verdicts, want %d: %+v", len(got), len(c.want), got)
			}
			for i, want := range c.want {
				want.Row = &rows[want.i]
				if got[i] != want.Verdict {
					t.Errorf("verdict %d is %+v, want %+v", i, got[i], want.Verdict)
				}
			}
		})
	}
}

// testRows makes a row for each letter, which names its operation.
func testRows(operations string) []Row {
	rows := make([]Row, len(operations))
	for i := range rows {
		rows[i] = Row{ID: int64(i + 1), OperationID: uuid.UUID{operations[i]}, Attempts: 1}
	}
	return rows
}

// TestVerdictsTogether: rows behind a failed one come due at the very instant that it
// does, whatever the jitter.
func TestVerdictsTogether(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	n := 0.0
	p.random = func() float64 { n += 0.1; return n }
	got := p.verdicts(testRows("aab"), []error{Failed.Wrap(errors.New("x")), errBehind, Failed.Wrap(errors.New("x"))}, nil)
	if got[0].Wait != got[1].Wait {
		t.Errorf("the row behind waits %s, want the %s of the failed one", got[1].Wait, got[0].Wait)
	}
	if got[0].Wait == got[2].Wait {
		t.Errorf("two operations wait the same %s, want different jitter", got[0].Wait)
	}
}

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		first, longest time.Duration
		n              int
		want           time.Duration
	}{
		{testRetry, testMaxRetry, 0, testRetry},
		{testRetry, testMaxRetry, 1, testRetry},
		{testRetry, testMaxRetry, 2, 2 * testRetry},
		{testRetry, testMaxRetry, 6, 32 * testRetry},
		{testRetry, testMaxRetry, 7, testMaxRetry},
		{time.Nanosecond, math.MaxInt64, 30, 1 << 29},
		{time.Nanosecond, math.MaxInt64, 33, 1 << 32},
		{time.Nanosecond, math.MaxInt64, 34, 1 << 33},
		{time.Nanosecond, math.MaxInt64, 62, 1 << 61},
		{time.Nanosecond, math.MaxInt64, 63, 1 << 62},
		{time.Nanosecond, math.MaxInt64, 64, math.MaxInt64},
		{time.Nanosecond, math.MaxInt64, math.MaxInt32, math.MaxInt64},
		{day, day, 1000, day},
		{day, time.Second, 1, time.Second}, // the longest wait bounds the first too
	} {
		if got := growing(c.first, c.longest, c.n); got != c.want {
			t.Errorf("growing(%s, %s, %d) = %s, want %s", c.first, c.longest, c.n, got, c.want)
		}
	}
	for _, n := range []int{1, 30, 33, 34, 62, 63, 64, 1000, math.MaxInt32} {
		for _, random := range []float64{0, 0.5, 1} {
			p := policy{retry: testRetry, maxRetry: testMaxRetry, random: func() float64 { return random }}
			full := growing(testRetry, testMaxRetry, n)
			row := &Row{Attempts: n}
			got := p.undelivered(row, Failed, errors.New("x")).Wait
			if want := time.Duration(float64(full) * (0.5 + random/2)); got != want || got < full/2 || got > full {
				t.Errorf("attempt %d with random %v waits %s, want %s", n, random, got, want)
			}
			// The environment's waits do not grow with a row's attempts.
			want := time.Duration(float64(testRetry) * (0.5 + random/2))
			if got := p.undelivered(row, Environment, errors.New("x")).Wait; got != want {
				t.Errorf("environment at attempt %d with random %v waits %s, want %s", n, random, got, want)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"plain", "refused", "refused"},
		{"NUL", "a\x00b\x00", "a\uFFFDb\uFFFD"},
		{"invalid UTF-8", "a\xff\xfe\xc3(", "a\uFFFD("},
		{"half a character", "a\xf0\x9f\x98", "a\uFFFD"},
		{"2,000 characters", strings.Repeat("ä", 2000), strings.Repeat("ä", 2000)},
		{"5,000 emoji", strings.Repeat("\U0001F600", 5000), strings.Repeat("\U0001F600", 2000)},
		{"invalid beyond the end", strings.Repeat("a\xff", 2000), strings.Repeat("a\uFFFD", 1000)},
		{"empty", "", "an error without a text"},
	} {
		for _, err := range []error{errors.New(c.text), RowFault.Wrap(errors.New(c.text))} {
			got := errorText(err)
			if got != c.want {
				t.Errorf("%s: %.60q, want %.60q", c.name, got, c.want)
			}
			if n := utf8.RuneCountInString(got); n > 2000 || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
				t.Errorf("%s: text of %d characters can't be stored", c.name, n)
			}
		}
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, class := range []Class{RowFault, Environment, Failed, NotAttempted, Unknown} {
		err := class.Wrap(cause)
		if ClassOf(err) != class || ClassOf(fmt.Errorf("step: %w", err)) != class {
			t.Errorf("an error of class %q is taken for %q", class, ClassOf(err))
		}
		if !errors.Is(err, cause) || err.Error() != cause.Error() {
			t.Errorf("%q: the class hides its error: %v", class, err)
		}
		if class.Wrap(nil) != nil {
			t.Errorf("%q makes an error of nil", class)
		}
		if class.String() == "" {
			t.Errorf("class %d has no name", class)
		}
	}
	if ClassOf(nil) != Delivered || ClassOf(cause) != Failed {
		t.Error("nil must be delivered, and an error without a class failed")
	}
	if err := Failed.Wrap(RowFault.Wrap(cause)); ClassOf(err) != Failed {
		t.Error("the outermost class must count")
	}
}
