package main

import "time"

// versions is how many events each operation has.
const versions = 3

// sizes say how much is measured.
type sizes struct {
	quick bool
	peers bool // what others have made drains too
	runs  int

	tenants    int // of the backlog that is drained
	operations int // of each of them
	oneByOne   int // rows that the loop takes that takes one at a time

	few, many int // operations pending where claims are measured
	batches   int // claims that make one measurement
	warmUps   int // measurements before those that count

	verified int // operations of each tenant, exported, where it is verified

	most    int // operations of each tenant, where a table has very many rows
	lasting int // operations of each tenant that are drained while writers write

	crowd        int // tenants where there are very many
	rate, fast   int // rows a second that are written
	warmUp, span time.Duration
}

var full = sizes{
	runs:    3,
	tenants: 10, operations: 6667, oneByOne: 3000,
	few: 3334, many: 333_334, batches: 5, warmUps: 10, verified: 166_667,
	most: 333_334, lasting: 20_000,
	crowd: 10_000, rate: 500, fast: 2000, warmUp: 3 * time.Second, span: 20 * time.Second,
}

var small = sizes{
	quick: true, runs: 1,
	tenants: 10, operations: 400, oneByOne: 200,
	few: 1000, many: 5000, batches: 2, warmUps: 1, verified: 1000,
	most: 1000, lasting: 1000,
	crowd: 500, rate: 200, fast: 400, warmUp: 500 * time.Millisecond, span: 2 * time.Second,
}

// backlog is how many rows are drained.
func (s sizes) backlog() int { return s.tenants * s.operations * versions }
