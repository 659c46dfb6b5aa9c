package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// Quarantine gives access to records that the store can't read: written by another program,
// truncated by a fault, or in a form that no version of this store has. Such a record never stops
// its shard. The first call that would change or take the record sets it aside instead, with its
// stored bytes. The call then does the rest of its work as if the record did not exist: a turn
// claims the other jobs, an acquire hands over the others, a step handles the others, and a push of
// the id makes a new job. A settlement of a claim that was set aside is skipped. Ticks returns the
// other schedules, and a change finds no schedule. Lists and Find leave out records that they can't
// read, and write nothing.
//
// Counts.Quarantined is the number of records that were set aside. Such a record never runs, and
// stays until Discard removes it. Before that, an operator should read the stored bytes and, if
// they matter, push the payloads anew. For Forget a queue with such records is not empty. If the
// types and constraints of a store's server admit no unreadable record, the store never sets a
// record aside.
type Quarantine interface {
	// QuarantinedShards returns the shards of a queue that have set records aside. It reads no
	// record. Stats returns their number among other counts, at a higher cost.
	//
	// Errors: ErrUnknownQueue; ErrInvalidRequest for a shard that the queue does not have; any
	// other error only if it reached none of the shards.
	QuarantinedShards(ctx context.Context, r QuarantinedShardsRequest) (QuarantinedShards, error)

	// Quarantined lists the records that a shard has set aside, in order of key.
	//
	// Errors: ErrUnknownQueue; ErrInvalidRequest for a shard that the queue does not have.
	Quarantined(ctx context.Context, r QuarantineRequest) (QuarantinePage, error)

	// Discard removes records that were set aside, and returns their number. Other entries of their
	// ids stay. Keys that do not exist are ignored. A repeated call changes nothing more.
	//
	// Errors: ErrUnknownQueue; ErrInvalidRequest, also for more than MaxStep keys.
	Discard(ctx context.Context, r DiscardRequest) (discarded int, err error)
}

// QuarantinedShardsRequest is a request for the shards of a queue that have set records aside.
type QuarantinedShardsRequest struct {
	Queue string
	// Shards are the indexes of the shards to check, in any order. nil means all shards, an empty
	// list means no shard.
	Shards []int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *QuarantinedShardsRequest) Validate() error { return validateShards(r.Shards) }

// QuarantinedShards are the shards of a queue that have set records aside.
type QuarantinedShards struct {
	// Shards are in order of index.
	Shards []core.Shard
	// Unreached are the requested shards that can't be reached now, in order of index.
	Unreached []core.Shard
}

// QuarantineRequest is a request for a page of the records that a shard has set aside.
type QuarantineRequest struct {
	Shard core.Shard
	// After is the Key of the last record of the previous page. It is empty for the first page.
	After string
	// Limit is the maximum number of records to return. 0 means DefaultPage, values above MaxPage
	// mean MaxPage.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *QuarantineRequest) Validate() error { return validateStep(r.Shard, 0) }

// Size returns Limit with its default and maximum applied.
func (r *QuarantineRequest) Size() int { return PageRequest{Limit: r.Limit}.Size() }

// QuarantinePage is a page of the records that a shard has set aside.
type QuarantinePage struct {
	Records []QuarantinedRecord
	// Next is the After of the next page. It is empty if this page is the last.
	Next string
}

// MaxQuarantinedBytes is the maximum size of the Stored bytes of a [QuarantinedRecord].
const MaxQuarantinedBytes = 16 << 10

// QuarantinedRecord is a record that was set aside.
type QuarantinedRecord struct {
	// Key identifies the record in its shard. It is never used for another record.
	Key string
	// ID is the id of its job, dead letter or schedule. The Reason has the schedule's name.
	ID string
	// Place is where the record was stored.
	Place Place
	// Since is when the record was set aside, by the store's clock.
	Since core.Instant
	// Reason is the cause why the store can't read the record, for people.
	Reason string
	// Stored is the record as the store keeps it, at most its first MaxQuarantinedBytes. Size is
	// the size of the whole record in bytes.
	Stored []byte
	Size   int
}

// Place is a place where the store keeps payloads or a record of an id.
type Place uint8

// Places.
const (
	// PlaceQueued is a queued job.
	PlaceQueued Place = iota
	// PlaceClaimed is a claimed job.
	PlaceClaimed
	// PlaceDead is a dead letter.
	PlaceDead
	// PlaceSchedule is a schedule. It holds no payloads of its id.
	PlaceSchedule
)

// String returns "queued", "claimed", "dead" or "schedule".
func (p Place) String() string {
	switch p {
	case PlaceQueued:
		return "queued"
	case PlaceClaimed:
		return "claimed"
	case PlaceDead:
		return "dead"
	case PlaceSchedule:
		return "schedule"
	}
	return fmt.Sprintf("Place(%d)", uint8(p))
}

// DiscardRequest names records that were set aside.
type DiscardRequest struct {
	Shard core.Shard
	// Keys are the keys of the records, at most MaxStep.
	Keys []string
}

// Validate returns [ErrInvalidRequest] for too many keys or a shard below 0.
func (r *DiscardRequest) Validate() error { return validateStep(r.Shard, len(r.Keys)) }
