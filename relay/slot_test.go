package relay

import "testing"

func TestSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		instance, worker int
		want             Slot
	}{{0, 0, Slot{"a-b-0-0", 0}}, {3, 7, Slot{"a-b-3-7", 31}}, {999, 1, Slot{"a-b-999-1", 7993}}} {
		slot := SlotOf("a-b", c.instance, c.worker)
		if slot != c.want {
			t.Errorf("instance %d, worker %d: %v, want %v", c.instance, c.worker, slot, c.want)
		}
		if got, ok := slotOfToken("a-b", slot.newToken()); !ok || got != slot {
			t.Errorf("of the token of %v: %v, %t", slot, got, ok)
		}
	}
	for _, token := range []string{
		"", "a-b-0-0", "a-b-0-0#init", "a-b-0-0#0123456789abcde", "a-b-0-0#0123456789abcdeg", "a-b-0-8#0123456789abcdef",
		"a-b-1000-0#0123456789abcdef", "a-b-00-0#0123456789abcdef", "a-b-0#0123456789abcdef", "a-0-0#0123456789abcdef",
		"x-a-b-0-0#0123456789abcdef", "a-b-0-0/0123456789abcdef", "worker/0123456789abcdef!",
	} {
		if slot, ok := slotOfToken("a-b", token); ok {
			t.Errorf("%q is taken for a token of %v", token, slot)
		}
	}
}
