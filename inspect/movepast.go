package inspect

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/ports"
)

// carryPast lets the move of each job or dead letter copy the record of its id, if the source has
// any. A move of all jobs copies all records of the source instead.
func (m *mover) carryPast(ctx context.Context) error {
	for _, marks := range []bool{false, true} {
		page, err := m.pastPage(ctx, ports.PageRequest{Limit: 1, Marks: marks})
		if err != nil {
			return err
		}
		// A page without a record may have a Next: behind it there may be some.
		if len(page.Past) > 0 || page.Next != (ports.Cursor{}) || len(page.Unreached) > 0 {
			m.carriesPast = true
			return nil
		}
	}
	return nil
}

func (m *mover) pastPage(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	r.Queue = m.queue
	return persist(ctx, m.inspector, func(s Store) (ports.PastPage, error) { return s.Past(ctx, r) })
}

// pastOf copies the records and the marks of ids that the move is about to take, unless it copies all
// of them anyway. They stay at the source until they go there by its bounds, or with the queue. So a
// stale payload that is pushed to either queue is recognized.
func (m *mover) pastOf(ctx context.Context, ids []string) error {
	if !m.carriesPast {
		return nil
	}

	var records, marks []core.Past
	for _, id := range ids {
		found, err := m.findPast(ctx, id)
		if err != nil {
			return err
		}
		if found.Past != nil {
			records = append(records, *found.Past)
		}
		// The time when a mark beside the record was raised is not found, so its age begins anew.
		if own := found.Past.Mark(); own.Raised(found.Mark) != own {
			marks = append(marks, core.Past{ID: id, DoneAt: found.Standing.Now, Score: found.Mark.Score})
		}
	}

	if err := m.putPast(ctx, records, false); err != nil {
		return err
	}
	return m.putPast(ctx, marks, true)
}

func (m *mover) findPast(ctx context.Context, id string) (ports.Found, error) {
	return persist(ctx, m.inspector, func(s Store) (ports.Found, error) {
		return s.Find(ctx, ports.FindRequest{Queue: m.queue, ID: id, MaxCount: -1})
	})
}

// allPast copies the records and the marks of a shard of the source.
func (m *mover) allPast(ctx context.Context, shard core.Shard) error {
	for _, marks := range []bool{false, true} {
		r := ports.PageRequest{Shards: []int{shard.Index}, Limit: ports.MaxStep, Marks: marks}
		for {
			page, err := m.pastPage(ctx, r)
			if err == nil {
				err = partial(page.Unreached)
			}
			if err != nil {
				return err
			}

			records, err := m.withResults(ctx, page.Past)
			if err != nil {
				return err
			}
			if err := m.putPast(ctx, records, marks); err != nil {
				return err
			}
			if r.After = page.Next; r.After == (ports.Cursor{}) {
				break
			}
		}
	}
	return nil
}

// withResults returns the records of a page with their results, which the page does not have. It
// leaves out those that are gone meanwhile.
func (m *mover) withResults(ctx context.Context, page []ports.PastView) ([]core.Past, error) {
	records := make([]core.Past, 0, len(page))
	for i := range page {
		if page[i].ResultBytes == 0 {
			records = append(records, page[i].Past)
			continue
		}
		found, err := m.findPast(ctx, page[i].ID)
		if err != nil {
			return nil, err
		}
		if found.Past != nil {
			records = append(records, *found.Past)
		}
	}
	return records, nil
}

// putPast imports records, or marks, into the shards of the target.
func (m *mover) putPast(ctx context.Context, records []core.Past, marks bool) error {
	id := func(p *core.Past) string { return p.ID }
	for at, some := range bulk.ByShard(records, m.to.Shards, id) {
		for len(some) > 0 {
			n, bytes := 0, 0
			for n < min(len(some), ports.MaxStep) && bytes+len(some[n].Result) <= core.MaxStepBytes {
				bytes += len(some[n].Result)
				n++
			}

			r := m.importInto(at)
			if marks {
				r.Marks = some[:n]
			} else {
				r.Past = some[:n]
			}
			_, err := persist(ctx, m.into, func(s Store) (ports.StepReply, error) { return s.Import(ctx, r) })
			if err != nil {
				return fmt.Errorf("the target %v: %w", r.Shard, err)
			}
			some = some[n:]
		}
	}
	return nil
}

// importInto is an import of nothing into a shard of the target.
func (m *mover) importInto(at int) ports.ImportRequest {
	return ports.ImportRequest{
		Shard:      core.Shard{Queue: m.to.Name, Index: at},
		Shards:     m.to.Shards,
		Generation: m.to.Generation,
		OnlyPaused: true,
	}
}
