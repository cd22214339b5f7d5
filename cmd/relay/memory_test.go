package main

import (
	"runtime/debug"
	"testing"
)

// The runtime's limit is a tenth below the container's, unless somebody set it.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	limitMemory(func() (uint64, error) { return 2 << 40, nil })
	if got, want := debug.SetMemoryLimit(-1), int64(2<<40)*9/10; got < want-1 || got > want+1 {
		t.Errorf("limit %d, want %d", got, want)
	}
	debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "3TiB")
	limitMemory(func() (uint64, error) { return 2 << 40, nil })
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("limit %d although GOMEMLIMIT is set, want the %d of before", got, before)
	}
}
