package main

import "github.com/KimMachineGun/automemlimit/memlimit"

// limitMemory tells the runtime of the container's memory limit, so that it collects
// garbage before the kernel ends the process. GOMEMLIMIT, if set, counts instead. A
// tenth is left for what the runtime does not see.
func limitMemory(limit memlimit.Provider) {
	_, _ = memlimit.Set(memlimit.WithProvider(limit)) // no limit to be told of: none is set
}
