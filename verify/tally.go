package verify

import "slices"

// tally counts findings by kind.
type tally struct {
	most  int // examples of each kind
	kinds map[Kind]*Finding
}

func newTally(most int) *tally { return &tally{most: most, kinds: map[Kind]*Finding{}} }

// add counts one.
func (t *tally) add(kind Kind, e Example) {
	f := t.of(kind)
	f.Count++
	t.keep(f, e)
}

func (t *tally) of(kind Kind) *Finding {
	f := t.kinds[kind]
	if f == nil {
		f = &Finding{Kind: kind}
		t.kinds[kind] = f
	}
	return f
}

// keep holds on to the first examples.
func (t *tally) keep(f *Finding, e Example) {
	if len(f.Examples) == t.most && e.compare(f.Examples[t.most-1]) >= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(f.Examples, e, Example.compare)
	f.Examples = slices.Insert(f.Examples, at, e)
	f.Examples = f.Examples[:min(len(f.Examples), t.most)]
}

// merge adds what another tally has.
func (t *tally) merge(other *tally) {
	for kind, found := range other.kinds {
		f := t.of(kind)
		f.Count += found.Count
		for _, e := range found.Examples {
			t.keep(f, e)
		}
	}
}

// findings are all kinds that were found, in their order.
func (t *tally) findings(exactlyOnce bool) (all []Finding) {
	for _, k := range kinds {
		f := t.kinds[k.kind]
		if f == nil {
			continue
		}
		f.Level, f.Meaning = k.level, k.meaning
		if exactlyOnce && k.kind == Duplicated {
			f.Level = Fault
		}
		all = append(all, *f)
	}
	return all
}
