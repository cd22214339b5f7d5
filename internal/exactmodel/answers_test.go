package exactmodel

// kind is which port is called.
type kind uint8

const (
	none kind = iota
	look
	open
	fence
	last
	claim
	commit
	settle
)

func (k kind) String() string {
	return [...]string{"nothing", "lists claims", "takes the slot", "fences slot", "looks up the last entry",
		"claims", "commits", "settles"}[k]
}

// call is what a thread asks of its ports.
type call struct {
	kind   kind
	slot   int   // of a fence or a look-up
	token  token // 0 in a claim: a new one
	limit  int   // rows of a claim
	marks  mask  // rows of a settlement or a commit
	freed  mask  // rows of a settlement that are released
	again  mask  // rows of a commit that are in it twice
	taking bool  // the worker is taking its slot
}

// answer is what it is told. Answers are kept as bytes, each as many.
type answer struct {
	outcome outcome
	stale   bool // before it was told, the helper saw a claim of the own slot that ran out
	held    [mostRows]held
}

// held is what a claim holds, one of the answers to a list; or the one answer to another call: the
// claim's token and rows, the last entry, the rows that were written.
type held struct {
	token   token
	rows    mask
	expired bool
}

type outcome uint8

const (
	fine outcome = iota
	failed
	fenced
)

const (
	width  = 1 + 2*mostRows
	staled = 0x80
	ranOut = 0x80
)

// history is all that a thread has heard, as an index of histories: so a world has no pointers, and
// millions of them cost the collector nothing.
type history int32

var (
	histories = []string{""}
	indexes   = map[string]history{"": 0}
)

func (h history) bytes() string { return histories[h] }

func historyOf(bytes []byte) history {
	h, ok := indexes[string(bytes)]
	if !ok {
		h = history(len(histories)) //nolint:gosec // some thousand
		histories = append(histories, string(bytes))
		indexes[histories[h]] = h
	}
	return h
}

// with is what has been heard with one answer more.
func (h history) with(a answer) history {
	b := append(make([]byte, 0, 64), h.bytes()...)
	first := byte(a.outcome)
	if a.stale {
		first |= staled
	}
	b = append(b, first)
	for _, h := range a.held {
		rows := byte(h.rows)
		if h.expired {
			rows |= ranOut
		}
		b = append(b, byte(h.token), rows)
	}
	return historyOf(b)
}

// answers reads what has been heard.
func (h history) answers() (list []answer) {
	for heard := h.bytes(); heard != ""; heard = heard[width:] {
		a := answer{outcome: outcome(heard[0] &^ staled), stale: heard[0]&staled != 0}
		for i := range a.held {
			rows := heard[2+2*i]
			a.held[i] = held{token(heard[1+2*i]), mask(rows &^ ranOut), rows&ranOut != 0}
		}
		list = append(list, a)
	}
	return list
}

// rename puts other tokens into what has been heard.
func (h history) rename(each func(token) token) history {
	var b []byte
	heard := h.bytes()
	for i := range len(heard) {
		if i%width%2 == 0 { // an outcome, or rows
			continue
		}
		if was := token(heard[i]); was != 0 {
			if is := each(was); is != was {
				if b == nil {
					b = []byte(heard)
				}
				b[i] = byte(is)
			}
		}
	}
	if b == nil {
		return h
	}
	return historyOf(b)
}
