package moments

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"strings"
	"sync"
)

// Statements are those that can be waited for, the more particular ones first.
func Statements() []string {
	names := make([]string, len(statements))
	for i, s := range statements {
		names[i] = s.name
	}
	return names
}

// Statements by what is in their text.
const (
	ClaimAbandoned = "claim of abandoned rows"
	Claim          = "claim"
	Payloads       = "reading of payloads"
	Renew          = "renewal"
	Mark           = "mark"
	MarkLate       = "late mark"
	Release        = "release"
)

var statements = []struct{ name, text string }{
	{ClaimAbandoned, "some of those that claims which ran out have"},
	{Claim, "-- Claims due rows"},
	{Payloads, "-- Reads the payloads of rows"},
	{Renew, "-- Gives a claim a new lease"},
	{MarkLate, "-- Marks rows that were delivered under a claim that has been lost"},
	{Mark, "-- Marks delivered rows exported"},
	{Release, "-- Gives up undelivered rows"},
}

// statement is the name of a statement, "" if it is another. What is only explained begins with that word.
func statement(text string) string {
	for _, s := range statements {
		if strings.HasPrefix(text, "--") && strings.Contains(text, s.text) {
			return s.name
		}
	}
	return ""
}

// Postgres starts a proxy that listens at an address, before a PostgreSQL server, for connections without TLS that are all of
// one relay. Port 0 stands for a free one.
func Postgres(address, upstream string, watch *Watch) (*Proxy, error) {
	return listen(address, upstream, func(c *conversation) {
		p := &postgres{conversation: c, watch: watch, prepared: map[string]string{}}
		c.both(p.requests, p.answers)
	})
}

// Messages of the protocol. Source: PostgreSQL's documentation, Message Formats.
const (
	parse, bind, describe, execute, closing, flush = 'P', 'B', 'D', 'E', 'C', 'H'
	commandComplete, readyForQuery                 = 'C', 'Z'
)

type postgres struct {
	*conversation
	watch    *Watch
	prepared map[string]string // the texts of prepared statements

	mu   sync.Mutex
	trap *Trap // for the answers to what was sent last
	left int   // how many commands must be complete before an open transaction is met
}

// batch is the messages up to the next sync.
type batch struct {
	messages [][]byte
	whats    []string
	commit   int // index of the message that begins it, 0 if none
	before   int // commands before that
}

func (p *postgres) requests() error {
	from := bufio.NewReader(p.client)
	if err := p.start(from); err != nil {
		return err
	}
	var b batch
	for {
		m, err := message(from)
		if err != nil {
			return err
		}
		p.note(&b, m)
		if inBatch(m[0]) {
			continue // until the sync
		}
		if err := p.send(b); err != nil {
			return err
		}
		b = batch{}
	}
}

// inBatch is true for messages that a sync follows, sooner or later.
func inBatch(kind byte) bool {
	return kind == parse || kind == bind || kind == execute || kind == describe || kind == closing
}

// start passes on what a connection begins with: one message without a kind.
func (p *postgres) start(from *bufio.Reader) error {
	size, err := from.Peek(4)
	if err != nil {
		return err
	}
	first, err := read(from, int(binary.BigEndian.Uint32(size)))
	if err != nil {
		return err
	}
	_, err = p.server.Write(first)
	return err
}

// note adds a message to a batch, and learns from it.
func (p *postgres) note(b *batch, m []byte) {
	b.messages = append(b.messages, m)
	first, rest, _ := bytes.Cut(m[5:], []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch m[0] {
	case parse:
		p.prepared[string(first)] = string(second)
	case bind:
		switch text := p.prepared[string(second)]; {
		case text == "commit":
			b.commit = len(b.messages) - 1
		case statement(text) != "":
			b.whats = append(b.whats, statement(text))
		}
	case execute:
		if b.commit == 0 {
			b.before++
		}
	}
}

// send passes a batch on, as far as a trap for it lets it.
func (p *postgres) send(b batch) error {
	whole := bytes.Join(b.messages, nil)
	trap := p.watch.take(b.whats...)
	if trap == nil {
		_, err := p.server.Write(whole)
		return err
	}
	if trap.moment.Stage == Sent {
		return p.spring(trap)
	}
	p.mu.Lock()
	p.trap, p.left = trap, b.before
	p.mu.Unlock()
	if trap.moment.Stage == Open {
		whole = append(bytes.Join(b.messages[:b.commit], nil), flush, 0, 0, 0, 4)
	}
	_, err := p.server.Write(whole)
	return err
}

func (p *postgres) answers() error {
	from := bufio.NewReader(p.server)
	for {
		m, err := message(from)
		if err != nil {
			return err
		}
		trap, now := p.met(m[0])
		if trap != nil && trap.moment.Stage != Told {
			if now {
				return p.spring(trap)
			}
			continue // kept back
		}
		if _, err := p.client.Write(m); err != nil {
			return err
		}
		if now {
			return p.spring(trap)
		}
	}
}

// met gives the trap for what is being answered, and tells whether this message of the server makes its moment.
func (p *postgres) met(kind byte) (trap *Trap, now bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil {
		return nil, false
	}
	if kind == commandComplete {
		p.left--
	}
	return p.trap, kind == readyForQuery || p.trap.moment.Stage == Open && p.left == 0
}

// message reads one, its kind and size in front.
func message(from *bufio.Reader) ([]byte, error) {
	head, err := from.Peek(5)
	if err != nil {
		return nil, err
	}
	n := 1 + int(binary.BigEndian.Uint32(head[1:]))
	if n < 5 || n > 1<<30 {
		return nil, errOver // this is not PostgreSQL's protocol
	}
	return read(from, n)
}
