package conformance

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// historyOf is a store with another history. keep returns the record that stays when next arrives
// for the owner, queue and minute of known.
func historyOf(s full, keep func(known, next core.Stats) core.Stats) full {
	type key struct {
		owner, queue string
		minute       core.Instant
	}
	records := map[key]core.Stats{}
	h := replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		for _, one := range r.Records {
			k := key{r.Owner, one.Queue, one.Minute}
			records[k] = keep(records[k], one.Stats)
		}
		return s.Record(ctx, r)
	})
	return replace(h, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		if _, err := s.History(ctx, r); err != nil {
			return ports.HistoryReply{}, err
		}
		sums := storekit.NewHistory(r, 0)
		for k, stats := range records {
			if k.queue == r.Queue {
				sums.Add(k.minute, &stats)
			}
		}
		return ports.HistoryReply{Minutes: sums.List()}, nil
	})
}

func newer(known, next core.Stats) core.Stats {
	if next.Counted() > known.Counted() {
		return next
	}
	return known
}

// addsRecords adds up records that should replace one another.
func addsRecords(s full) full {
	return historyOf(s, func(known, next core.Stats) core.Stats { known.Add(&next); return known })
}

func takesLateRecords(s full) full {
	return historyOf(s, func(_, next core.Stats) core.Stats { return next })
}

// keepsHistory lists whatever was ever recorded.
func keepsHistory(s full) full { return historyOf(s, newer) }

// removesHistoryAtOnce never lists a minute again that was once too old.
func removesHistoryAtOnce(s full) full {
	latest := map[string]core.Instant{}
	h := replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		for _, one := range r.Records {
			latest[one.Queue] = max(latest[one.Queue], one.Minute)
		}
		return s.Record(ctx, r)
	})
	return replace(h, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		r.From = max(r.From, latest[r.Queue].Add(-ports.HistoryKept))
		return s.History(ctx, r)
	})
}

// mixesOwners keeps one record of each minute for all owners.
func mixesOwners(s full) full {
	return replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		if r.Owner != "" {
			r.Owner = "all"
		}
		return s.Record(ctx, r)
	})
}

// startsStepsAtFrom begins steps where the list begins.
func startsStepsAtFrom(s full) full {
	return replace(s, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		reply, err := s.History(ctx, r)
		if list := reply.Minutes; r.Step > 0 && len(list) > 0 {
			list[0].At = max(list[0].At, r.From.Minute())
		}
		return reply, err
	})
}

// refusesUndeclared fails for a record of a queue that was not declared.
func refusesUndeclared(s full) full {
	return replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		for _, one := range r.Records {
			if _, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{one.Queue}}); err != nil {
				return err
			}
		}
		return s.Record(ctx, r)
	})
}
