package verify

// Level says how bad a finding is.
type Level int

// The levels, from harmless to bad.
const (
	Information Level = iota
	Warning
	Fault
)

func (l Level) String() string {
	switch l {
	case Fault:
		return "fault"
	case Warning:
		return "warn"
	default:
		return "info"
	}
}

// Kind is what a finding is about.
type Kind string

// The kinds of findings. All above Duplicated are faults, Duplicated is one in exactly-once only, and Gap is a warning.
const (
	// Lost: a row is marked exported, and its record isn't in the topic.
	Lost Kind = "lost"
	// OutOfOrder: an event was first delivered after a later one of its operation, or not yet though a later one was.
	OutOfOrder Kind = "out-of-order"
	// WrongScope: a record speaks of another namespace or tenant than the operation has, or lies in another topic than
	// its tenant's.
	WrongScope Kind = "wrong-scope"
	// Malformed: a record is no event.
	Malformed Kind = "malformed"
	// Altered: a record differs from its row, or from its first delivery if the row is gone.
	Altered Kind = "altered"
	// Duplicated: an event was delivered again. At least once allows that.
	Duplicated Kind = "duplicated"
	// Gap: versions between two that were delivered are neither in the topic nor in the table. They were given up and
	// then pruned, or lost and then pruned. Counts operations.
	Gap Kind = "gap"
	// Unjudged: topic and table don't tell, because of retention, compaction or more partitions than there were.
	Unjudged Kind = "unjudged"
	// NoRow: a record's row is gone, as rows are after pruning, or was written after its part of the table was read.
	NoRow Kind = "no-row"
	// Others: a record of another application or of a scope that wasn't asked for.
	Others Kind = "others"
	// GivenUp: a row was discarded or dead-lettered, and so never delivered.
	GivenUp Kind = "given-up"
	// Unmarked: a record's row isn't marked exported. It is on its way, or will be delivered again.
	Unmarked Kind = "unmarked"
	// Waiting: a row isn't exported yet.
	Waiting Kind = "waiting"
)

// kinds are all kinds in the order in which they are told.
var kinds = []struct {
	kind    Kind
	level   Level
	meaning string
}{
	{Lost, Fault, "events are marked exported but not in the topic"},
	{OutOfOrder, Fault, "events were overtaken by later ones of their operation"},
	{WrongScope, Fault, "records are under another namespace or tenant, or in another topic, than they belong"},
	{Malformed, Fault, "records are no events"},
	{Altered, Fault, "records differ from their rows or their first delivery"},
	{Duplicated, Warning, "records repeat an event that was delivered before"},
	{Gap, Warning, "operations miss versions that neither topic nor table have any more"},
	{Unjudged, Information, "events can't be judged, as the topic doesn't hold everything any more, or its partitions were changed"},
	{NoRow, Information, "delivered events have no row any more, or none yet when the table was read"},
	{Others, Information, "records belong to other applications or scopes"},
	{GivenUp, Information, "events were discarded or dead-lettered"},
	{Unmarked, Information, "delivered events are not marked exported yet"},
	{Waiting, Information, "events are not exported yet"},
}
