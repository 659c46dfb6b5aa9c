package broken

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenFailures() []brokenStore {
	return []brokenStore{
		{
			"keeps only the newest failure",
			"failures/keeps the last five failures of a job, the newest first",
			wrapped(changesSettlements(func(x *core.Settlement) { x.PutBack.Failures = onlyNewest(x.PutBack.Failures) })),
		},
		{
			"keeps the oldest failures",
			"failures/keeps the last five failures of a job, the newest first",
			wrapped(keepsOldestFailures),
		},
		{
			"forgets the failures of a job that is put back without one",
			"failures/keeps the failures of a job that ends without one",
			wrapped(changesSettlements(func(x *core.Settlement) {
				if !x.Failed {
					x.PutBack.Failures = nil
				}
			})),
		},
		{
			"drops the older failures at a burial",
			"failures/buries the failures with their job",
			wrapped(changesSettlements(func(x *core.Settlement) { x.Letter.Failures = onlyNewest(x.Letter.Failures) })),
		},
		{
			"lists only the newest failure of a dead letter",
			"failures/buries the failures with their job",
			wrapped(listsNewestFailure),
		},
		{
			"keeps failures of any size and number",
			"failures/keeps failures within their bounds",
			wrapped(keepsAllFailures),
		},
		{
			"mixes the failures of two jobs",
			"failures/keeps the list of the returning job alone",
			wrapped(mixesFailures(
				func(found ports.Found) core.Failures {
					if found.Queued == nil {
						return nil
					}
					return found.Queued.Failures
				},
				func(x *core.Settlement) *core.Failures { return &x.PutBack.Failures },
			)),
		},
		{
			"mixes the failures of two dead letters",
			"failures/keeps the list of the later burial alone",
			wrapped(mixesFailures(
				func(found ports.Found) core.Failures {
					if found.DeadLetter == nil {
						return nil
					}
					return found.DeadLetter.Failures
				},
				func(x *core.Settlement) *core.Failures { return &x.Letter.Failures },
			)),
		},
		{
			"shows all failures where errors are cut",
			"list/error texts are truncated at the limit asked for",
			wrapped(listsAllFailures),
		},
		{
			"imports more than five failures",
			"import jobs/refuses a whole request for one invalid job",
			wrapped(importsAllFailures),
		},
	}
}

func onlyNewest(l core.Failures) core.Failures { return l[:min(1, len(l))] }

// changesSettlements changes the settlements of turns.
func changesSettlements(change func(x *core.Settlement)) func(full) full {
	return func(s full) full {
		return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
			r.Settlements = slices.Clone(r.Settlements)
			for i := range r.Settlements {
				change(&r.Settlements[i])
			}
			return s.Turn(ctx, r)
		})
	}
}

// keepsOldestFailures keeps the first five failures, and drops each later one.
func keepsOldestFailures(s full) full {
	kept := map[string]core.Failures{}
	return changesSettlements(func(x *core.Settlement) {
		if known, ok := kept[x.ID]; ok && x.Failed {
			x.PutBack.Failures = known
		} else if len(x.PutBack.Failures) == core.MaxFailures {
			kept[x.ID] = x.PutBack.Failures
		}
	})(s)
}

func listsNewestFailure(s full) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		page, err := s.Morgue(ctx, r)
		for i := range page.DeadLetters {
			page.DeadLetters[i].Failures = onlyNewest(page.DeadLetters[i].Failures)
		}
		return page, err
	})
}

// keepsAllFailures returns the failures of a claimed job as they were sent.
func keepsAllFailures(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		for i := range reply.Claims {
			for _, x := range r.Settlements {
				if c := &reply.Claims[i]; c.ID == x.ID {
					c.Failures = x.PutBack.Failures
				}
			}
		}
		return reply, err
	})
}

// mixesFailures adds the failures of an entry that a settlement meets to those of the settlement.
func mixesFailures(met func(ports.Found) core.Failures, of func(*core.Settlement) *core.Failures) func(full) full {
	return func(s full) full {
		return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
			r.Settlements = slices.Clone(r.Settlements)
			for i := range r.Settlements {
				x := &r.Settlements[i]
				found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: x.ID})
				if err == nil {
					*of(x) = slices.Concat(*of(x), met(found))
				}
			}
			return s.Turn(ctx, r)
		})
	}
}

func listsAllFailures(s full) full {
	return changesJobs(s, noChange, func(r ports.JobsRequest, page *ports.JobsPage) {
		for i := range page.Jobs {
			found, err := s.Find(context.Background(), ports.FindRequest{Queue: r.Queue, ID: page.Jobs[i].ID})
			if err == nil && found.Queued != nil {
				page.Jobs[i].Failures = found.Queued.Failures
			}
		}
	})
}

func importsAllFailures(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		r.Jobs = slices.Clone(r.Jobs)
		for i := range r.Jobs {
			if l := r.Jobs[i].Failures; len(l) > core.MaxFailures {
				r.Jobs[i].Failures = l[:core.MaxFailures]
			}
		}
		return s.Import(ctx, r)
	})
}
