package relay

import "testing"

// A relay that has just been made holds no slot, so that it is not said to be ready before it can claim anything.
func TestNoSlotIsHeldAtFirst(t *testing.T) {
	t.Parallel()
	r, err := New(Config{Namespace: "orders", Workers: 2, ExactlyOnce: &ExactlyOnce{Prefix: "orders"}}, nil, noSink{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Health().Slots; h.Held != 0 || h.Waiting != 2 || h.Err == nil {
		t.Errorf("%+v, want both slots to be waited for", h)
	}
}

type noSink struct{ Sink }
