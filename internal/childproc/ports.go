package childproc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports lie below those that systems give to outgoing connections (32768 and up on Linux, 49152 elsewhere): a port stays
// free between our looking and the server's start, and while a server that will have it again is down.
const firstPort, lastPort = 15000, 32000

// FreePorts returns n different loopback ports that nothing listens on, and that no other call gives to anybody, in this
// process or another, until this process ends: the UDP port of the same number is held so long.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries == 1000 {
			return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		reserved, err := net.ListenPacket("udp", Loopback(port))
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", Loopback(port))
		if err != nil {
			reserved.Close()
			continue
		}
		listener.Close()
		reservations.Store(port, reserved) // a socket that nothing refers to would be closed
		ports = append(ports, port)
	}
	return ports, nil
}

var reservations sync.Map

// Loopback returns the address of a port on this machine.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
