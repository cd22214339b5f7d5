package main

import (
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"outboxrelay/envelope"
	"outboxrelay/internal/settings"
	"outboxrelay/relay"
)

// newLogger writes lines to w: for people on a terminal, else JSON.
func newLogger(s *settings.Settings, w io.Writer) zerolog.Logger {
	format := s.LogFormat
	if format == "" {
		format = "json"
		if isTerminal(w) {
			format = "console"
		}
	}
	if format == "console" {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)}
	}
	level, err := zerolog.ParseLevel(s.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // the settings allow zerolog's names only
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// diaryEvery is the least time between two lines about one kind of trouble.
const diaryEvery = time.Minute

// diary is the relay's log as an observer: troubles come by the thousand, and it
// writes the first of a kind, then one line a minute with how many there were.
type diary struct {
	relay.Unobserved
	log zerolog.Logger

	mu    sync.Mutex
	pages map[string]*page
	open  map[relay.TroubleKind]envelope.Scope // troubles written and not yet over, with whose they were
}

// page is what is known of one kind of trouble.
type page struct {
	written time.Time
	unsaid  int
}

func newDiary(log zerolog.Logger) *diary {
	return &diary{log: log, pages: map[string]*page{}, open: map[relay.TroubleKind]envelope.Scope{}}
}

// Trouble implements [relay.Observer].
func (d *diary) Trouble(t relay.Trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	message := troubleText(t.Kind)
	unsaid, ok := d.turn(message)
	if !ok {
		return
	}
	line := d.log.Error()
	if t.Kind == relay.ForeignClaims {
		line = d.log.Warn()
	}
	line = line.Err(told(t.Err, ""))
	if t.Scope.Valid() {
		line = line.Stringer("scope", t.Scope)
	}
	if t.Row != 0 {
		line = line.Int64("row", t.Row)
	}
	if unsaid > 0 {
		line = line.Int("repeated", unsaid)
	}
	line.Msg(message)
	d.open[t.Kind] = t.Scope
}

// Claimed implements [relay.Observer]: a claim of the scope that was written about ends
// a database's trouble.
func (d *diary) Claimed(c relay.Claim, _ time.Duration) {
	d.over(c.Scope, relay.DatabaseTrouble, "the database answers again")
}

// Settled implements [relay.Observer]: a delivery ends a sink's trouble.
func (d *diary) Settled(c relay.Claim, verdicts []relay.Verdict, _ []relay.Result, _ time.Duration) {
	if slices.ContainsFunc(verdicts, func(v relay.Verdict) bool { return v.Exported }) {
		d.over(c.Scope, relay.SinkTrouble, "events are sent again")
		d.over(c.Scope, relay.SendTrouble, "events are delivered again")
	}
}

// Recovered implements [relay.Observer]. Of each outcome it tells once a minute.
func (d *diary) Recovered(c relay.Claim, verdicts []relay.Verdict) {
	message := "a claim was released, as it was not committed"
	if v := verdicts[0]; v.Exported || v.DeadLettered {
		message = "a claim was marked, as it was committed"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if unsaid, ok := d.turn(message); ok {
		d.log.Info().Str("claim", c.Token).Stringer("scope", c.Scope).Int("rows", len(verdicts)).Int("repeated", unsaid).Msg(message)
	}
}

// Fenced implements [relay.Observer]. Of each kind of change it tells once a minute.
func (d *diary) Fenced(slot relay.Slot, how relay.Fencing) {
	message := map[relay.Fencing]string{
		relay.FencedOwn:     "a slot was taken",
		relay.FencedOther:   "another relay's slot was fenced, since a claim of it had run out",
		relay.FencedByOther: "a slot was lost: another relay has fenced it, or the brokers ended its transaction",
	}[how]
	d.mu.Lock()
	defer d.mu.Unlock()
	if unsaid, ok := d.turn(message); ok {
		d.log.Info().Str("slot", slot.ID).Int("repeated", unsaid).Msg(message)
	}
}

// over writes once that a trouble is over, if a line told of it.
func (d *diary) over(scope envelope.Scope, kind relay.TroubleKind, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	whose, ok := d.open[kind]
	if !ok || whose.Valid() && whose != scope {
		return
	}
	delete(d.open, kind)
	d.log.Info().Stringer("scope", scope).Msg(message)
}

// client takes lines of the Kafka client.
func (d *diary) client(message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if unsaid, ok := d.turn("kafka client"); ok {
		d.log.Warn().Int("repeated", unsaid).Msg(printable("kafka client: " + message))
	}
}

// turn is true if a kind of line may be written now, with how many were left out. The
// caller holds mu.
func (d *diary) turn(kind string) (unsaid int, ok bool) {
	p := d.pages[kind]
	if p == nil {
		p = &page{}
		d.pages[kind] = p
	}
	if time.Since(p.written) < diaryEvery {
		p.unsaid++
		return 0, false
	}
	unsaid = p.unsaid
	p.written, p.unsaid = time.Now(), 0
	return unsaid, true
}

func troubleText(kind relay.TroubleKind) string {
	switch kind {
	case relay.DatabaseTrouble:
		return "the database does not do what is needed; it is tried again"
	case relay.SinkTrouble:
		return "nothing is claimed, because it could not be sent; it is tried again"
	case relay.RowTrouble:
		return "an event can't be sent as it is and was parked; the rest of its operation waits for it"
	case relay.LetterTrouble:
		return "an event can't be sent as it is and went to the dead-letter topic"
	case relay.SendTrouble:
		return "events were not acknowledged; they are tried again"
	case relay.SlotTrouble:
		return "a slot can't be used, so nothing is claimed by it; it is tried again"
	case relay.ForeignClaims:
		return "another exporter works on the same rows"
	}
	return "trouble"
}

// observers passes everything on to several.
type observers []relay.Observer

func (o observers) Claimed(c relay.Claim, took time.Duration) {
	for _, each := range o {
		each.Claimed(c, took)
	}
}

func (o observers) Published(c relay.Claim, took time.Duration) {
	for _, each := range o {
		each.Published(c, took)
	}
}

func (o observers) Settled(c relay.Claim, v []relay.Verdict, r []relay.Result, took time.Duration) {
	for _, each := range o {
		each.Settled(c, v, r, took)
	}
}

func (o observers) Released(c relay.Claim) {
	for _, each := range o {
		each.Released(c)
	}
}

func (o observers) Recovered(c relay.Claim, v []relay.Verdict) {
	for _, each := range o {
		each.Recovered(c, v)
	}
}

func (o observers) Fenced(slot relay.Slot, how relay.Fencing) {
	for _, each := range o {
		each.Fenced(slot, how)
	}
}

func (o observers) Trouble(t relay.Trouble) {
	for _, each := range o {
		each.Trouble(t)
	}
}
