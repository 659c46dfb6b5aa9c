package inspect

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// QuarantinedRecord is the record of a job, a dead letter or a schedule that the store can't read.
// The store has set it aside, so that the other jobs and schedules of its shard still run.
type QuarantinedRecord struct {
	Shard core.Shard `json:"shard" class:"queue" wide:"shard" doc:"its shard, as orders/3" index:"the index of that shard, for discard"`
	// Key identifies the record in its shard, for [Inspector.Discard].
	Key    string    `json:"key" class:"sealed" doc:"its key within the shard, for discard"`
	ID     string    `json:"id" class:"id" doc:"the entity of the record, as far as it can be read"`
	Place  string    `json:"place" class:"public" doc:"the place of the record: queued, claimed, dead or schedule"`
	Since  time.Time `json:"since" class:"public" doc:"when it was set aside"` // by the store's clock
	Reason string    `json:"reason" class:"error" doc:"why the record can't be read"`
	// Size is the size of the whole record, and Stored has at most its first [MaxQuarantinedBytes].
	Size   int    `json:"size" class:"public" doc:"its size in bytes"`
	Stored []byte `json:"data" class:"payload" wide:"true" doc:"the bytes, if they are UTF-8" base64:"the bytes in standard Base64, if they are not UTF-8"`
}

// MaxQuarantinedBytes is the maximum size of the Stored bytes of a [QuarantinedRecord].
const MaxQuarantinedBytes = ports.MaxQuarantinedBytes

// Quarantined lists the records of a queue that were set aside because they can't be read, shard by
// shard. [Counts] has their number. If shards can't be reached, the list ends with a
// *[PartialError]. Read the stored bytes, push the payloads anew if they matter, then call
// [Inspector.Discard].
func (i *Inspector) Quarantined(ctx context.Context, queue string) iter.Seq2[QuarantinedRecord, error] {
	return func(yield func(QuarantinedRecord, error) bool) {
		found, err := ask(i, func(s Store) (ports.QuarantinedShards, error) {
			return s.QuarantinedShards(ctx, ports.QuarantinedShardsRequest{Queue: queue})
		})
		if err != nil {
			yield(QuarantinedRecord{}, fmt.Errorf("quarantine of %s: %w", queue, err))
			return
		}

		for _, shard := range found.Shards {
			if !i.quarantined(ctx, shard, yield) {
				return
			}
		}

		if err := partial(found.Unreached); err != nil {
			yield(QuarantinedRecord{}, err)
		}
	}
}

// quarantined yields the records that one shard has set aside, and reports whether to continue.
func (i *Inspector) quarantined(ctx context.Context, shard core.Shard, yield func(QuarantinedRecord, error) bool) bool {
	r := ports.QuarantineRequest{Shard: shard}
	for {
		page, err := ask(i, func(s Store) (ports.QuarantinePage, error) { return s.Quarantined(ctx, r) })
		if err != nil {
			yield(QuarantinedRecord{}, fmt.Errorf("quarantine of %v: %w", shard, err))
			return false
		}

		for _, q := range page.Records {
			if !yield(QuarantinedRecord{
				Shard:  shard,
				Key:    q.Key,
				ID:     q.ID,
				Place:  q.Place.String(),
				Since:  q.Since.Time(),
				Reason: q.Reason,
				Stored: q.Stored,
				Size:   q.Size,
			}, nil) {
				return false
			}
		}

		if r.After = page.Next; r.After == "" {
			return true
		}
	}
}

// Discard removes records that were set aside, by their keys in a shard, at most [ports.MaxStep],
// and returns the number of removed records. Other entries of their ids stay. Keys that do not
// exist are ignored. For a shard that the queue doesn't have, and for too many keys, Discard
// returns [ErrInvalidRequest].
func (i *Inspector) Discard(ctx context.Context, shard core.Shard, keys ...string) (discarded int, err error) {
	d := i.begin(ctx, "discard", shard.Queue, keys).start(ctx)
	defer func() { d.end(ctx, discarded, err) }()
	discarded, err = persist(ctx, i, func(s Store) (int, error) {
		return s.Discard(ctx, ports.DiscardRequest{Shard: shard, Keys: keys})
	})
	if err != nil {
		return 0, fmt.Errorf("discard: %w", err)
	}
	return discarded, nil
}
