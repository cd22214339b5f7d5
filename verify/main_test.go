package verify

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Servers that tests share end with the process: these two watch over theirs.
		goleak.IgnoreAnyFunction("outboxrelay/internal/childproc.(*Process).wait"),
		goleak.IgnoreAnyFunction("github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"),
	)
}
