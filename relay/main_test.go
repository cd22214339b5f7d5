package relay_test

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs all on one processor: with more, the race detector of Go 1.26 now and then aborts in bubbles of virtual time
// (golang/go#78156). It finds races by the order of synchronisation, so it needs no second one.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}
