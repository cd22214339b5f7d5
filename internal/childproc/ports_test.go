package childproc

import (
	"net"
	"testing"
)

func TestFreePortsAreDifferentAndFree(t *testing.T) {
	t.Parallel()
	ports, err := FreePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if seen[port] {
			t.Errorf("port %d was given twice", port)
		}
		seen[port] = true
		listener, err := net.Listen("tcp", Loopback(port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		listener.Close()
	}
	if len(seen) != 50 {
		t.Errorf("%d ports, want 50", len(seen))
	}
}
