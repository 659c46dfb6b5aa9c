package conformance

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// importsOther imports other dead letters than it is asked to.
func importsOther(s full, change func(ctx context.Context, r *ports.ImportRequest, d *core.DeadLetter)) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		r.DeadLetters = slices.Clone(r.DeadLetters)
		for i := range r.DeadLetters {
			change(ctx, &r, &r.DeadLetters[i])
		}
		return s.Import(ctx, r)
	})
}

func importsWithoutMeta(s full) full {
	return importsOther(s, func(_ context.Context, _ *ports.ImportRequest, d *core.DeadLetter) {
		d.Payloads = slices.Clone(d.Payloads)
		for i := range d.Payloads {
			d.Payloads[i].Meta = nil
		}
	})
}

func importsAsOfNow(s full) full {
	return importsOther(s, func(ctx context.Context, _ *ports.ImportRequest, d *core.DeadLetter) {
		if nodes, err := s.Nodes(ctx); err == nil && d.ChangedAt <= core.MaxInstant && d.ChangedAt >= 0 {
			d.ChangedAt = nodes.Now
		}
	})
}

// importsNewest takes what comes for what was buried last, as a burial is.
func importsNewest(s full) full {
	return importsOther(s, func(ctx context.Context, r *ports.ImportRequest, d *core.DeadLetter) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: d.ID, Payloads: 1000})
		if err == nil && found.DeadLetter != nil && found.DeadLetter.ChangedAt >= d.ChangedAt && d.ChangedAt >= 0 {
			d.ChangedAt = found.DeadLetter.ChangedAt + 1
		}
	})
}

func importsTwice(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		reply, err := s.Import(ctx, r)
		if err == nil {
			reply.Handled = reply.Reached
		}
		return reply, err
	})
}

// doublesImports keeps what is there of an id beside what comes.
func doublesImports(s full) full {
	return importsOther(s, func(ctx context.Context, r *ports.ImportRequest, d *core.DeadLetter) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: d.ID, Payloads: 1000})
		if err != nil || found.DeadLetter == nil {
			return
		}
		d.Payloads = slices.Clone(d.Payloads)
		for i := range d.Payloads {
			d.Payloads[i].Data = append(slices.Clone(d.Payloads[i].Data), 0)
		}
	})
}

// importsInPart imports dead letters one by one, until one is refused.
func importsInPart(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (all ports.StepReply, err error) {
		for _, d := range r.DeadLetters {
			one := r
			one.DeadLetters = []core.DeadLetter{d}
			reply, err := s.Import(ctx, one)
			if err != nil {
				return ports.StepReply{}, err
			}
			all.Now = reply.Now
			all.Handled, all.Reached = all.Handled+reply.Handled, all.Reached+reply.Reached
		}
		return all, nil
	})
}

// importsInPlace makes the scores -0 of its caller 0.
func importsInPlace(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		for _, d := range r.DeadLetters {
			for i := range d.Payloads {
				d.Payloads[i].Score = core.NormalScore(d.Payloads[i].Score)
			}
		}
		return s.Import(ctx, r)
	})
}
