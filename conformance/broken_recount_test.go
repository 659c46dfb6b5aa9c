package conformance

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// inSteps is a store that recounts in two steps: change is what it does to the reply of the second,
// given that of the first, which ends at "half".
func inSteps(s full, change func(first ports.RecountReply, second *ports.RecountReply)) full {
	var first ports.RecountReply
	return replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		half := r.After == "half"
		if half {
			r.After = ""
		}
		reply, err := s.Recount(ctx, r)
		if err != nil {
			return reply, err
		}
		if half {
			reply.Counted -= first.Counted
			change(first, &reply)
			return reply, nil
		}
		reply.Counted /= 2
		reply.Next = "half"
		first = reply
		return reply, nil
	})
}

// recountsForEver goes back to its first step.
func recountsForEver(s full) full {
	return inSteps(s, func(_ ports.RecountReply, second *ports.RecountReply) { second.Next = "half" })
}

// recountsHalf ends with what its first step has counted.
func recountsHalf(s full) full {
	return inSteps(s, func(_ ports.RecountReply, second *ports.RecountReply) { second.Counted = 0 })
}

// recountsWhatWas stores what its first step has counted, whatever has changed since.
func recountsWhatWas(s full) full {
	return inSteps(s, func(first ports.RecountReply, second *ports.RecountReply) { second.After = first.After })
}

// recountsTwice adds what a step counts to what it has counted before.
func recountsTwice(s full) full {
	seen := map[string]int64{}
	return replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		reply, err := s.Recount(ctx, r)
		reply.After.Fresh += seen[r.After]
		seen[r.After] += reply.Before.Fresh
		return reply, err
	})
}

// recountsFromAnywhere takes a place that it has not returned for the beginning.
func recountsFromAnywhere(s full) full {
	return replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		r.After = ""
		return s.Recount(ctx, r)
	})
}

func brokenRecounts() []brokenStore {
	return []brokenStore{
		{"claims beside a job that runs alone after a recount", "recount/leaves a job alone that runs alone", wrapped(recountsAway)},
		{"loses the place that a recount has come to", "recount/counts all in its steps", wrapped(recountsForEver)},
		{"ends a recount early", "recount/counts all in its steps", wrapped(recountsHalf)},
		{"corrects by what earlier steps have counted", "recount/goes on while the shard is worked", wrapped(recountsWhatWas)},
		{"adds what a step counts again", "recount/may be repeated", wrapped(recountsTwice)},
		{"recounts from a place that is none", "recount/refuses what is no shard and no place", wrapped(recountsFromAnywhere)},
	}
}
