package core

import (
	"fmt"
	"time"
)

// Limits of records of what became of ids (docs/rules.md 14).
const (
	// MaxResultBytes is the maximum size in bytes of the result of a job.
	MaxResultBytes = 64 << 10
	// MinKeepAge and MaxKeepAge are the limits of the Age of a [KeepPast].
	MinKeepAge = time.Minute
	MaxKeepAge = 3650 * 24 * time.Hour
	// MaxKeepCount is the maximum Count of a KeepPast, and MaxKeepBytes is its maximum Bytes.
	MaxKeepCount = 1 << 40
	MaxKeepBytes = 1 << 50
	// ImportedKeepAge is how long imported records are kept after the job was done until a turn of
	// their shard has kept records, and brought an age of its own.
	ImportedKeepAge = 30 * 24 * time.Hour
	// MaxPastRemoved is the maximum number of records that one turn removes.
	MaxPastRemoved = 500
)

// Past is the record of what became of an id: its last run that ended as done (docs/rules.md 14).
type Past struct {
	ID string
	// Started is when the run started, by the server's estimate of the store's clock. Nothing is
	// decided by it.
	Started Instant
	// DoneAt is when the store has settled the job, by the store's clock.
	DoneAt Instant
	// Took is how long the handler ran, in whole microseconds, by the server's clock.
	Took time.Duration
	// Score is the highest score of the payloads of the run.
	Score float64
	// Raises is true if Score counts for the mark of the id, since the queue drops stale payloads
	// (docs/rules.md 16).
	Raises bool
	// Payloads is the number of payloads that the run ended with. Payloads of the job that were
	// settled one by one before are not counted.
	Payloads int
	// Attempt is 1 if the job had not failed before, 2 for the first retry, and so on.
	Attempt int
	// Node is the name of the server that ran the job, at most MaxNodeBytes.
	Node string
	// Result is what the handler returned, at most MaxResultBytes. It is empty if there is none. A
	// store that is full may leave it out.
	Result []byte
}

// Stored returns the record in the form in which stores keep it: of the given id, done at the given
// instant, with Started limited to the range of instants, Took to whole microseconds from 0 to
// [Forever], Score by [NormalScore], Node truncated to MaxNodeBytes, Attempt and Payloads of 1 to
// 2^31-1, and a nil Result if it is empty.
func (p *Past) Stored(id string, doneAt Instant) Past {
	const most = 1<<31 - 1
	s := *p
	s.ID, s.DoneAt = id, doneAt
	s.Started = max(0, min(p.Started, MaxInstant))
	s.Took = max(0, min(p.Took, Forever)).Truncate(time.Microsecond)
	s.Node = CutText(Text(p.Node), MaxNodeBytes)
	s.Payloads, s.Attempt = max(1, min(p.Payloads, most)), max(1, min(p.Attempt, most))

	s.Score = NormalScore(p.Score)
	if validateScore(p.Score) != nil {
		s.Score = 0
	}
	if len(p.Result) == 0 {
		s.Result = nil
	}
	return s
}

// Run is what a server knows of a run of a job.
type Run struct {
	// Started, Took, Node and Result are those of the run's [Past].
	Started Instant
	Took    time.Duration
	Node    string
	Result  []byte
}

// Record sets Past of the settlement if its job ends as done: if it is Processed and not Failed,
// and none of its payloads stays.
func (s *Settlement) Record(c *Claim, run Run) {
	if !s.Processed || s.Failed || !s.Plain() || len(c.Payloads) == 0 {
		return
	}
	s.Past = &Past{
		ID:       c.ID,
		Started:  run.Started,
		Took:     run.Took,
		Score:    c.Payloads[len(c.Payloads)-1].Score,
		Payloads: len(c.Payloads),
		Attempt:  max(0, c.RetryCount+1) + 1,
		Node:     run.Node,
		Result:   run.Result,
	}
}

// KeepPast bounds the records of what became of the ids of a queue, or of one shard. The zero value
// keeps no record.
type KeepPast struct {
	// Age is how long a record is kept after the job was done, at least [MinKeepAge].
	Age time.Duration
	// Count is the maximum number of records. 0 is no limit.
	Count int64
	// Bytes is the maximum number of bytes of all results together. 0 is no limit.
	Bytes int64
}

// Any reports whether records are kept.
func (k KeepPast) Any() bool { return k != KeepPast{} }

// Validate returns [ErrInvalidOptions] for a KeepPast that is not zero and has an Age outside
// [MinKeepAge] … [MaxKeepAge], a Count outside 0 … [MaxKeepCount], or Bytes other than 0 outside
// [MaxResultBytes] … [MaxKeepBytes].
func (k KeepPast) Validate() error {
	switch {
	case k == KeepPast{}:
		return nil
	case k.Age < MinKeepAge || k.Age > MaxKeepAge:
		return fmt.Errorf("%w: records are kept for an Age of %v; give %v to %v, or the zero KeepPast for no records",
			ErrInvalidOptions, k.Age, MinKeepAge, MaxKeepAge)
	case k.Count < 0 || k.Count > MaxKeepCount:
		return fmt.Errorf("%w: a Count of %d records is kept; give 0, for no limit, to %d",
			ErrInvalidOptions, k.Count, int64(MaxKeepCount))
	case k.Bytes != 0 && k.Bytes < MaxResultBytes || k.Bytes > MaxKeepBytes:
		return fmt.Errorf("%w: %d Bytes of results are kept; give %d to %d, or 0 for no limit",
			ErrInvalidOptions, k.Bytes, MaxResultBytes, int64(MaxKeepBytes))
	}
	return nil
}

// PerShard returns the bounds for each shard of a queue with these bounds and that number of
// shards: Count and Bytes divided by it, rounded up, and of Bytes at least one result.
func (k KeepPast) PerShard(shards int) KeepPast {
	k.Count = partOf(k.Count, shards)
	if k.Bytes > 0 {
		k.Bytes = max(MaxResultBytes, partOf(k.Bytes, shards))
	}
	return k
}

// Before returns the instant before which a job must have been done for its record to be removed
// for its age.
func (k KeepPast) Before(now Instant) Instant { return max(0, now.Add(-k.Age)) }

// Removes reports whether the record of a shard that is the first by (DoneAt, id) is removed, given
// its DoneAt, the number of the shard's records and the bytes of all their results, each with this
// record.
func (k KeepPast) Removes(first Instant, records, bytes int64, now Instant) bool {
	return !k.Any() || first < k.Before(now) || k.Count > 0 && records > k.Count || k.Bytes > 0 && bytes > k.Bytes
}

// ImportPast returns which of two records of an id stays if the second one is imported
// (docs/rules.md 14): the one that was done later, on a tie the present one. gone is the other one if
// its mark is higher than that of the record that stays, and otherwise nil: the mark of gone is then
// kept beside the record. present is nil if the id has no record.
func ImportPast(present, imported *Past) (stays, gone *Past) {
	if present == nil {
		return imported, nil
	}

	stays, gone = present, imported
	if imported.DoneAt > present.DoneAt {
		stays, gone = imported, present
	}
	if m := stays.Mark(); m.Raised(gone.Mark()) == m {
		return stays, nil
	}
	return stays, gone
}

// ImportMark returns what is kept beside the record of an id if the mark of a record is imported, or a
// mark that another queue kept (docs/rules.md 16). Both are given as records, of which only ID, DoneAt
// and Score are read; so is the result, which has no other field but Raises. present is nil if the id
// has no mark beside its record.
func ImportMark(present *Past, imported Past) Past {
	kept := Past{ID: imported.ID, DoneAt: imported.DoneAt, Score: NormalScore(imported.Score), Raises: true}
	if present != nil {
		kept.DoneAt, kept.Score = max(kept.DoneAt, present.DoneAt), max(kept.Score, present.Score)
	}
	return kept
}
