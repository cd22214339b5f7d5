package e2e_test

import (
	"os"
	"testing"

	"outboxrelay/internal/relayproc"
)

func TestMain(m *testing.M) { os.Exit(relayproc.Main(m)) }
