package broken

import (
	"bytes"
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// editsQueued changes how a store edits queued jobs.
func editsQueued(s full, do func(context.Context, ports.EditRequest) (ports.StepReply, error)) full {
	return replace(s, "Edit", func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		if !r.Queued {
			return s.Edit(ctx, r)
		}
		return do(ctx, r)
	})
}

// editsDeadInstead edits the dead letter of an id instead of its queued job.
func editsDeadInstead(s full) full {
	return editsQueued(s, func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		reply, err := s.Edit(ctx, r)
		if err != nil || reply.Handled > 0 {
			return reply, err
		}
		r.Queued = false
		return s.Edit(ctx, r)
	})
}

// queuedPayloads returns the payloads of a queued job.
func queuedPayloads(ctx context.Context, s full, r *ports.EditRequest) ([]core.Payload, error) {
	found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: r.ID, Payloads: 1000})
	if err != nil || found.Queued == nil {
		return nil, err
	}
	return found.Queued.Payloads, nil
}

// editsByPush removes the payload and pushes another one.
func editsByPush(s full) full {
	return editsQueued(s, func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		payloads, err := queuedPayloads(ctx, s, &r)
		at := slices.IndexFunc(payloads, func(p core.Payload) bool { return bytes.Equal(p.Data, r.Old) })
		if err != nil || at < 0 {
			return s.Edit(ctx, r)
		}
		one := ports.JobStep{Shard: r.Shard, IDs: []string{r.ID}, Payloads: [][]core.Payload{payloads[at : at+1]}}
		if _, err := s.Delete(ctx, one); err != nil {
			return ports.StepReply{}, err
		}

		p := payloads[at]
		p.Data = r.New
		reply, err := s.Push(ctx, ports.PushRequest{
			Queue:      r.Shard.Queue,
			Shards:     1,
			Generation: 1,
			Entries:    []core.Entry{{ID: r.ID, Payload: p}},
		})
		return ports.StepReply{Handled: 1, Now: reply.Now}, err
	})
}

// editsMakeDue makes an edited job due.
func editsMakeDue(s full) full {
	return editsQueued(s, func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		reply, err := s.Edit(ctx, r)
		if err != nil || reply.Handled == 0 {
			return reply, err
		}
		_, err = s.Expedite(ctx, ports.JobStep{Shard: r.Shard, IDs: []string{r.ID}})
		return reply, err
	})
}

// editsNothingKnown refuses to merge a payload with one that the job has.
func editsNothingKnown(s full) full {
	return editsQueued(s, func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		payloads, err := queuedPayloads(ctx, s, &r)
		if err != nil || slices.ContainsFunc(payloads, func(p core.Payload) bool { return bytes.Equal(p.Data, r.New) }) {
			r.Old = []byte("no such payload")
		}
		return s.Edit(ctx, r)
	})
}

// editsBeyondBound lets an edited job keep more payloads than the queue's rule does.
func editsBeyondBound(s full) full {
	return editsQueued(s, func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		queues, err := s.Queues(ctx)
		at := slices.IndexFunc(queues, func(q ports.Queue) bool { return q.Name == r.Shard.Queue })
		if err != nil || at < 0 || queues[at].Merge.Keep == 0 {
			return s.Edit(ctx, r)
		}
		rule := queues[at].Merge
		wider := rule
		wider.Keep = core.MaxTurnPayloads
		if err := s.SetMerge(ctx, ports.SetMergeRequest{Queue: r.Shard.Queue, Merge: wider}); err != nil {
			return ports.StepReply{}, err
		}
		reply, err := s.Edit(ctx, r)
		if err != nil {
			return reply, err
		}
		return reply, s.SetMerge(ctx, ports.SetMergeRequest{Queue: r.Shard.Queue, Merge: rule})
	})
}

// countsEdits counts each edit of a queued job, also one that finds no payload.
func countsEdits(s full) full {
	return editsQueued(s, func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		reply, err := s.Edit(ctx, r)
		reply.Handled = 1
		return reply, err
	})
}
