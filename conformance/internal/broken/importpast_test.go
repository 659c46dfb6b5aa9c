package broken

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenImportedPasts() []brokenStore {
	return []brokenStore{
		{"imports no records", "import past/stores every field of a record", wrapped(importsPast(
			func(_ full, _ context.Context, r *ports.ImportRequest) { r.Past = nil }))},
		{"imports records without results", "import past/stores every field of a record", wrapped(importsEachPast(
			func(p *core.Past) { p.Result = nil }))},
		{"dates imported records as of now", "import past/stores every field of a record", wrapped(importsPast(
			func(s full, ctx context.Context, r *ports.ImportRequest) {
				for i := range r.Past {
					r.Past[i].DoneAt = importsNow(s, ctx)
				}
			}))},
		{"imports records that raise no mark", "import past/stores every field of a record", wrapped(importsEachPast(
			func(p *core.Past) { p.Raises = false }))},
		{"imports the first hundred records", "import past/stores many records", wrapped(importsPast(
			func(_ full, _ context.Context, r *ports.ImportRequest) { r.Past = r.Past[:min(len(r.Past), 100)] }))},
		{"keeps the present records", "import past/keeps the record that was done later and the highest mark",
			wrapped(importsWherePresent(func(*core.Past, *core.Past) bool { return false }))},
		{"loses the marks of imported records that go",
			"import past/keeps the record that was done later and the highest mark",
			wrapped(importsWherePresent(func(present, p *core.Past) bool { return p.DoneAt > present.DoneAt }))},
		{"loses the marks of present records that go",
			"import past/keeps the record that was done later and the highest mark",
			wrapped(losesMarksOfReplaced)},
		{"imports marks as of the last", "import past/stores marks", wrapped(showsImportedMarks)},
		{"imports no marks", "import past/stores marks", wrapped(importsPast(
			func(_ full, _ context.Context, r *ports.ImportRequest) { r.Marks = nil }))},
		{"raises marks anew with each import", "import past/changes nothing when it is repeated", wrapped(raisesMarksAnew)},
		{"lists records as marks", "import past/lists marks", wrapped(func(s full) full {
			return replace(s, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
				r.Marks = false
				return s.Past(ctx, r)
			})
		})},
		{"imports records as dead letters", "import past/leaves jobs and dead letters alone", wrapped(importsPast(
			func(s full, ctx context.Context, r *ports.ImportRequest) {
				for _, p := range r.Past {
					_, _ = s.Bury(ctx, ports.JobStep{Shard: r.Shard, IDs: []string{p.ID}})
				}
			}))},
		{"removes imported records", "import past/stores records that go by the bounds of their new queue",
			wrapped(importsEachPast(func(p *core.Past) { p.DoneAt = 0 }))},
		{"keeps imported records for ever", "import past/stores records that stay for 30 days in a queue that keeps none",
			wrapped(keepsOld)},
		{"takes any imported record", "import past/refuses a whole request for one invalid record", wrapped(importsEachPast(
			func(p *core.Past) { p.DoneAt = max(0, p.DoneAt) }))},
	}
}

// importsPast changes the requests of imports of records and marks.
func importsPast(change func(s full, ctx context.Context, r *ports.ImportRequest)) func(full) full {
	return func(s full) full {
		return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
			n := r.Entries()
			if len(r.Past)+len(r.Marks) == 0 {
				return s.Import(ctx, r)
			}
			r.Past, r.Marks = slices.Clone(r.Past), slices.Clone(r.Marks)
			change(s, ctx, &r)
			reply, err := s.Import(ctx, r)
			if err == nil {
				reply.Handled, reply.Reached = n, n
			}
			return reply, err
		})
	}
}

func importsEachPast(change func(p *core.Past)) func(full) full {
	return importsPast(func(_ full, _ context.Context, r *ports.ImportRequest) {
		for i := range r.Past {
			change(&r.Past[i])
		}
	})
}

// importsNow returns the store's clock.
func importsNow(s full, ctx context.Context) core.Instant {
	stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil {
		return 0
	}
	return stats[0].Now
}

// importsWherePresent imports a record whose id has one only if wanted returns true.
func importsWherePresent(wanted func(present, p *core.Past) bool) func(full) full {
	return importsPast(func(s full, ctx context.Context, r *ports.ImportRequest) {
		r.Past = slices.DeleteFunc(r.Past, func(p core.Past) bool {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: p.ID})
			return err == nil && found.Past != nil && !wanted(found.Past, &p)
		})
	})
}

// losesMarksOfReplaced shows the marks of replaced records no more.
func losesMarksOfReplaced(s full) full {
	lost := map[string]bool{}
	h := importsPast(func(s full, ctx context.Context, r *ports.ImportRequest) {
		for _, p := range r.Past {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: p.ID})
			lost[p.ID] = err == nil && found.Past != nil && found.Past.Raises && found.Past.DoneAt < p.DoneAt
		}
	})(s)
	return replace(h, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		if lost[r.ID] {
			found.Mark = found.Past.Mark()
		}
		return found, err
	})
}

// raisesMarksAnew raises marks with each import.
func raisesMarksAnew(s full) full {
	imports := 0.0
	return importsPast(func(_ full, _ context.Context, r *ports.ImportRequest) {
		imports++
		for i := range r.Marks {
			r.Marks[i].Score += imports
		}
	})(s)
}

// showsImportedMarks shows the last imported mark of each id.
func showsImportedMarks(s full) full {
	marks := map[string]core.Mark{}
	h := importsPast(func(_ full, _ context.Context, r *ports.ImportRequest) {
		for _, m := range r.Marks {
			marks[m.ID] = core.MarkAt(m.Score)
		}
	})(s)
	return replace(h, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		if m, ok := marks[r.ID]; ok {
			found.Mark = m
		}
		return found, err
	})
}
