package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// Quarantine is where a shard keeps records that the store can't read: written by another
// program, cut by a fault, or of a form that no version of this store has. One such record
// never stops its shard. The first call that would change or take it sets it aside instead, with
// what is stored, and does the rest of its work as if it were not there: a turn claims the
// others, an acquire hands over the others, a step handles the others, and a push of its id makes
// a job of its own. A settlement of a claim that was set aside is skipped. Lists and Find leave out what they can't read, and write nothing.
//
// Counts.Quarantined says how many there are. Nothing that is set aside runs, and it stays until
// Discard removes it: whoever does that has seen what is stored, and has pushed it anew if it matters.
// A queue that holds some is not empty for Forget. A store whose server admits no such record, by
// types and constraints, always has none.
type Quarantine interface {
	// QuarantinedShards tells which shards of a queue have set something aside, and reads no record. Stats
	// counts the same beside much else, and costs accordingly.
	//
	// Errors: ErrUnknownQueue; ErrInvalidRequest for a shard that the queue does not have; any other only if it
	// reached none of the shards.
	QuarantinedShards(ctx context.Context, r QuarantinedShardsRequest) (QuarantinedShards, error)

	// Quarantined lists what a shard has set aside, in order of key.
	//
	// Errors: ErrUnknownQueue; ErrInvalidRequest for a shard that the queue does not have.
	Quarantined(ctx context.Context, r QuarantineRequest) (QuarantinePage, error)

	// Discard removes records that were set aside, and returns how many. What their ids have besides
	// stays. Keys that are not there are ignored. Repeating it changes nothing more.
	//
	// Errors: ErrUnknownQueue; ErrInvalidRequest, also for more than MaxStep keys.
	Discard(ctx context.Context, r DiscardRequest) (discarded int, err error)
}

// QuarantinedShardsRequest asks which shards of a queue have set something aside.
type QuarantinedShardsRequest struct {
	Queue string
	// Shards are the indexes of those to look at, in any order; nil is all of them, an empty list none.
	Shards []int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *QuarantinedShardsRequest) Validate() error { return validateShards(r.Shards) }

// QuarantinedShards are the shards of a queue that have set something aside.
type QuarantinedShards struct {
	// Shards are in order of index.
	Shards []core.Shard
	// Unreached are those of which that can't be told, in order of index.
	Unreached []core.Shard
}

// QuarantineRequest asks for what a shard has set aside.
type QuarantineRequest struct {
	Shard core.Shard
	// After is the Key of the last record of the page before; empty for the first page.
	After string
	// Limit is how many records to return: 0 is DefaultPage, above MaxPage is MaxPage.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *QuarantineRequest) Validate() error { return validateStep(r.Shard, 0) }

// Size returns Limit with its default and bound applied.
func (r *QuarantineRequest) Size() int { return PageRequest{Limit: r.Limit}.Size() }

// QuarantinePage is a page of what a shard has set aside.
type QuarantinePage struct {
	Records []QuarantinedRecord
	// Next is the After of the page that follows; empty if this is the last.
	Next string
}

// MaxQuarantinedBytes is how much of a record that was set aside is shown.
const MaxQuarantinedBytes = 16 << 10

// QuarantinedRecord is a record that was set aside.
type QuarantinedRecord struct {
	// Key names it in its shard, and never another.
	Key string
	// ID is that of its job or dead letter.
	ID string
	// Place is where it stood.
	Place Place
	// Since is when it was set aside.
	Since core.Instant
	// Reason says what about it can't be read, for people.
	Reason string
	// Stored is the record as it is kept, at most MaxQuarantinedBytes of its Size bytes.
	Stored []byte
	Size   int
}

// Place is where the store keeps a payload.
type Place uint8

// Places.
const (
	// PlaceQueued is a job that waits.
	PlaceQueued Place = iota
	// PlaceClaimed is a job that a node has taken.
	PlaceClaimed
	// PlaceDead is a dead letter.
	PlaceDead
)

// String returns "queued", "claimed" or "dead".
func (p Place) String() string {
	switch p {
	case PlaceQueued:
		return "queued"
	case PlaceClaimed:
		return "claimed"
	case PlaceDead:
		return "dead"
	}
	return fmt.Sprintf("Place(%d)", uint8(p))
}

// DiscardRequest names records that were set aside.
type DiscardRequest struct {
	Shard core.Shard
	// Keys are at most MaxStep.
	Keys []string
}

// Validate returns [ErrInvalidRequest] for too many keys or a shard below 0.
func (r *DiscardRequest) Validate() error { return validateStep(r.Shard, len(r.Keys)) }
