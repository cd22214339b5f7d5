package migrations

// Step is one object that a run has dealt with, or is dealing with.
type Step struct {
	// Name is the object, for people: "index relay_outbox_operation".
	Name string
	// SQL is exactly what was run, or would be, comments and all. Empty when nothing is to do, and while waiting.
	SQL string
	// Outcome is what was done.
	Outcome Outcome
	// Detail says more, for people: how far a build is, what is waited for. Often empty.
	Detail string
}

// Outcome is what was done about an object.
type Outcome string

// Each step ends with one of the first five or, in a dry run, with AlreadyThere or one of the Would outcomes. Before
// that it may be reported several times as Waiting or Building.
const (
	AlreadyThere Outcome = "already there"
	Created      Outcome = "created"
	Rebuilt      Outcome = "rebuilt"
	Set          Outcome = "set"
	Granted      Outcome = "granted"

	WouldCreate  Outcome = "would create"
	WouldRebuild Outcome = "would rebuild"
	WouldSet     Outcome = "would set"
	WouldGrant   Outcome = "would grant"

	// Waiting is for another run, or for a lock that another session holds.
	Waiting Outcome = "waiting"
	// Building is a build of the index that takes long.
	Building Outcome = "building"
)

// planned is the dry run's word for it.
func (o Outcome) planned() Outcome {
	switch o {
	case Created:
		return WouldCreate
	case Rebuilt:
		return WouldRebuild
	case Set:
		return WouldSet
	case Granted:
		return WouldGrant
	default:
		return o
	}
}
