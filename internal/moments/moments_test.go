package moments

import "testing"

// A trap whose moment had begun to come, on a connection that ended then, can be taken away, and does nothing afterwards. It used
// to be waited for without end.
func TestTrapThatIsTakenAway(t *testing.T) {
	t.Parallel()
	w, acted := &Watch{}, 0
	met := w.Arm(Moment{Claim, Told}, func() { acted++ })
	if w.take(Claim) != met || w.Disarm(met) || met.spring() || acted != 0 {
		t.Errorf("a trap that was met and taken away acted %d times", acted)
	}
	sprung := w.Arm(Moment{Claim, Told}, func() { acted++ })
	if w.take(Claim) != sprung || !sprung.spring() || !w.Disarm(sprung) || acted != 1 {
		t.Errorf("a trap acted %d times before it was taken away, want once", acted)
	}
	<-sprung.Sprung()
}
