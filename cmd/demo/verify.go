package main

import (
	"fmt"

	"github.com/google/uuid"
)

// findings is what problems has checked, for people.
func (o outcome) findings() []string {
	return []string{
		"every transition of a relayed tenant is in the topic, with its payload as PostgreSQL gives it",
		"nothing else is: no stranger, no event under another tenant's name",
		"the events of each operation arrived in the order of their versions",
		o.repetition(),
		"all their rows are marked exported, no claim and no error is left",
		"tenant " + o.notRelayed + " was not touched, and nobody's operations were",
	}
}

func (o outcome) repetition() string {
	if o.once() {
		return "each event is there once for who reads committed records"
	}
	return fmt.Sprintf("one event came twice (%s of tenant %s), the same to the byte", o.repeated, o.repeated.tenant)
}

// once is true if no event may have come twice.
func (o outcome) once() bool { return o.repeated == (transition{}) }

// problems is everything that is not as it should be.
func (o outcome) problems() []string {
	var all []string
	all = append(all, o.topicProblems()...)
	all = append(all, o.orderProblems()...)
	all = append(all, o.duplicateProblems()...)
	all = append(all, o.tableProblems()...)
	return append(all, o.operationProblems()...)
}

// topicProblems: exactly what was written is in the topic, under its own tenant, with its own payload.
func (o outcome) topicProblems() (problems []string) {
	payloads := map[transition]string{}
	for _, r := range o.table {
		payloads[r.transition()] = r.Payload
	}
	missing := map[transition]bool{}
	for _, t := range o.written {
		missing[t] = t.tenant != o.notRelayed
	}
	for _, d := range o.topic {
		place := fmt.Sprintf("partition %d, offset %d", d.partition, d.offset)
		t := d.transition()
		switch expected, known := missing[t]; {
		case d.malformed != nil:
			problems = append(problems, fmt.Sprintf("%s: the record is no event: %v", place, d.malformed))
			continue
		case t.tenant == o.notRelayed:
			problems = append(problems, fmt.Sprintf("%s: an event of tenant %s, which is not relayed", place, t.tenant))
		case !known || d.event.Namespace != namespace:
			problems = append(problems, fmt.Sprintf("%s: nobody wrote %s of tenant %s in namespace %s", place, t, t.tenant, d.event.Namespace))
		case string(d.event.Data) != payloads[t]:
			problems = append(problems, fmt.Sprintf("%s: the value of %s is not the row's payload", place, t))
		case expected:
			missing[t] = false
		}
	}
	for _, t := range o.written {
		if missing[t] {
			problems = append(problems, fmt.Sprintf("%s of tenant %s is not in the topic", t, t.tenant))
		}
	}
	return problems
}

// orderProblems: the first deliveries of each operation are versions 1, 2, 3 ...
func (o outcome) orderProblems() (problems []string) {
	last := map[uuid.UUID]int64{}
	for _, d := range o.topic {
		t := d.transition()
		if d.malformed != nil || t.version <= last[t.operation] {
			continue
		}
		if t.version != last[t.operation]+1 {
			problems = append(problems, fmt.Sprintf("%s of tenant %s arrived right after version %d", t, t.tenant, last[t.operation]))
		}
		last[t.operation] = t.version
	}
	return problems
}

// duplicateProblems: one event came twice, and both times the same, or in exactly-once mode none.
func (o outcome) duplicateProblems() (problems []string) {
	first := map[transition]*delivery{}
	again := map[transition]int{}
	for _, d := range o.topic {
		t := d.transition()
		if d.malformed != nil {
			continue
		}
		if first[t] == nil {
			first[t] = d
			continue
		}
		again[t]++
		if !d.same(first[t]) {
			problems = append(problems, fmt.Sprintf("%s of tenant %s came again, and not the same", t, t.tenant))
		}
	}
	if n := again[o.repeated]; n != 1 && !o.once() {
		problems = append(problems, fmt.Sprintf("%s of tenant %s came %d times; twice is expected, because the relay was killed", o.repeated, o.repeated.tenant, n+1))
	}
	delete(again, o.repeated)
	for t, n := range again {
		problems = append(problems, fmt.Sprintf("%s of tenant %s came %d times", t, t.tenant, n+1))
	}
	return problems
}

// tableProblems: what is relayed is marked, and the rest is as it was written.
func (o outcome) tableProblems() (problems []string) {
	if len(o.table) != len(o.written) {
		problems = append(problems, fmt.Sprintf("the outbox has %d rows, %d were written", len(o.table), len(o.written)))
	}
	for _, r := range o.table {
		relayed := r.TenantScope != o.notRelayed
		switch {
		case r.Exported != relayed || r.Claimed || r.LastError != "":
			problems = append(problems, fmt.Sprintf("row of %s of tenant %s: exported %t, claimed %t, last_error %q",
				r.transition(), r.TenantScope, r.Exported, r.Claimed, r.LastError))
		case relayed == (r.Attempts == 0):
			problems = append(problems, fmt.Sprintf("row of %s of tenant %s: %d attempts", r.transition(), r.TenantScope, r.Attempts))
		}
	}
	return problems
}

// operationProblems: operations are as the application left them.
func (o outcome) operationProblems() (problems []string) {
	left := map[uuid.UUID]int64{}
	for _, t := range o.written {
		left[t.operation] = max(left[t.operation], t.version)
	}
	for id, version := range left {
		if o.operations[id] != version {
			problems = append(problems, fmt.Sprintf("operation %.6s has version %d, the application left %d", id, o.operations[id], version))
		}
	}
	if len(o.operations) != len(left) {
		problems = append(problems, fmt.Sprintf("there are %d operations, the application made %d", len(o.operations), len(left)))
	}
	return problems
}
