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
	more, err := FreePorts(500) // while nothing listens on the first ones yet
	if err != nil {
		t.Fatal(err)
	}
	ports = append(ports, more...)
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
	if len(seen) != 550 {
		t.Errorf("%d ports, want 550", len(seen))
	}
}
