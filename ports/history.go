package ports

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// HistoryKept is how long a store lists the statistics of a minute. It lists the present minute and
// the minutes that began at most HistoryKept before it. It keeps the records for at least one more
// hour.
const HistoryKept = 24 * time.Hour

// Day is the Step of a [HistoryRequest] for the statistics of days.
const Day = 24 * time.Hour

// DaysKept is how many days before the present one a store lists. It keeps a few days more.
const DaysKept = 30

// MaxRecords is the maximum number of records of one [Registry.Record].
const MaxRecords = 1000

// RecordRequest is the statistics that an owner has counted.
type RecordRequest struct {
	// Owner is the id of the process that has counted, usually the Owner of a server: see [Node].
	// It is not empty.
	Owner string
	// Records are the statistics, at most [MaxRecords], in any order. Without records the call does
	// nothing.
	Records []Record
}

// Record is the statistics of a queue in a minute: the totals that an owner has counted so far.
type Record struct {
	Queue string
	// Minute is the start of the minute, by the store's clock.
	Minute core.Instant
	Stats  core.Stats
}

// Validate returns [ErrInvalidRequest] for an owner that is empty or not a [core.Text], for more
// than [MaxRecords] records, and for a Minute that is not the start of a minute.
func (r *RecordRequest) Validate() error {
	if r.Owner == "" {
		return errNoOwner
	}
	if err := validateTexts("the owner", r.Owner); err != nil {
		return err
	}

	if len(r.Records) > MaxRecords {
		return fmt.Errorf("%w: the call has %d records; send at most %d, and the others in another call",
			ErrInvalidRequest, len(r.Records), MaxRecords)
	}

	for i := range r.Records {
		if at := r.Records[i].Minute; at < 0 || at > core.MaxInstant || at != at.Minute() {
			return fmt.Errorf("%w: %d µs is not the start of a minute; use Instant.Minute", ErrInvalidRequest, at)
		}
	}
	return nil
}

// HistoryRequest is a request for the statistics of a queue.
type HistoryRequest struct {
	Queue string
	// From and To bound the starts of the minutes: From is inclusive, To is exclusive. A To of 0
	// means no end.
	From, To core.Instant
	// Step is the time that one entry of the reply sums up: whole minutes, at most a [Day]. 0 means
	// one minute. Entries begin at multiples of Step since the Unix epoch. The first and the last
	// entry lack the minutes that From and To leave out.
	//
	// The entries of a Day are different: each is a whole day of UTC, also of minutes that are no
	// longer kept. They are the days with a part between From and To, of the last DaysKept days and
	// the present one.
	Step time.Duration
}

// Validate returns [ErrInvalidRequest] for a Step below 0, above a [Day], or not of whole minutes.
func (r *HistoryRequest) Validate() error {
	if r.Step < 0 || r.Step > Day || r.Step%time.Minute != 0 {
		return fmt.Errorf("%w: a step of %v; give 1 minute to 24 hours, in whole minutes", ErrInvalidRequest, r.Step)
	}
	return nil
}

// StepOf returns the start of the entry that includes a minute.
func (r *HistoryRequest) StepOf(minute core.Instant) core.Instant {
	step := core.Instant(max(r.Step, time.Minute).Microseconds())
	return minute - minute%step
}

// HistoryReply is the statistics of a queue.
type HistoryReply struct {
	// Minutes are in order of time, each once. Minutes, or days, in which nothing was counted are
	// left out.
	Minutes []MinuteStats
	// Unreached are the shards that hold a part of the history, or all of it, and can't be reached
	// now, in order of index. Their part is missing in Minutes.
	Unreached []core.Shard
}

// MinuteStats is the statistics of one minute, or of one Step of several minutes.
type MinuteStats struct {
	// At is the start of the minute or Step.
	At core.Instant
	core.Stats
}
