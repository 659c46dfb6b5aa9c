package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Verdict is why the job of an id does not run, or that it does.
type Verdict struct {
	// Reason is the first that holds of those that package core lists.
	Reason core.Reason
	// Text says it in a sentence, for people.
	Text string
	// Until is when it ends by itself, by the store's clock: when the job becomes due, or the lease of the shard ends. It is zero if that can't be said.
	Until time.Time
	// Now is the store's clock when it was asked.
	Now time.Time
	// Ahead is how many due jobs of the shard are in front, counted to 1,000.
	Ahead int
	// Alone is the id of a job that runs alone and comes first; empty if there is none.
	Alone string
	// Servers are the names of the servers that serve the queue and don't drain.
	Servers []string
	// Found is what the queue holds for the id.
	Found Found
}

// Why returns why the job of an id does not run, or that it does: one look at its shard and one at the list of
// servers. The limit of a queue over all servers is not looked at. Errors are those of [Inspector.Find].
func (i *Inspector) Why(ctx context.Context, queue, id string) (Verdict, error) {
	stored, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, queue, id) })
	if err != nil {
		return Verdict{}, err
	}
	nodes, err := ask(i, func(s Store) (ports.NodesReply, error) { return s.Nodes(ctx) })
	if err != nil {
		return Verdict{}, err
	}
	st := stored.Standing
	v := Verdict{Now: st.Now.Time(), Ahead: st.Ahead, Alone: st.Alone, Found: i.views.found(id, &stored)}
	for _, n := range nodes.Nodes {
		if n.State(nodes.Now) == NodeAlive && slices.Contains(n.Queues, queue) {
			v.Servers = append(v.Servers, n.Name)
		}
	}
	f := factsOf(&stored, len(v.Servers))
	v.Reason = core.Why(f)
	v.Text, v.Until = v.say(&stored)
	return v, nil
}

// factsOf returns what core.Why asks for.
func factsOf(stored *ports.Found, served int) core.Facts {
	st := &stored.Standing
	f := core.Facts{
		Now: st.Now, Paused: st.Paused, Served: served, Owned: st.Owner != "" && st.ExpiresAt > st.Now,
		Ahead: st.Ahead, BehindAlone: st.Alone != "", ShardClaims: st.Claimed, Dead: stored.DeadLetter != nil,
	}
	if q := stored.Queued; q != nil {
		f.Queued, f.State = true, q.State
	}
	if c := stored.Claim; c != nil {
		f.Claimed, f.Running, f.LeaseOver = true, c.Begun, c.LeaseOver
	}
	return f
}

// say returns the verdict's Text and Until.
func (v *Verdict) say(stored *ports.Found) (text string, until time.Time) {
	st, lease := &stored.Standing, time.Time{}
	if st.Owner != "" && st.ExpiresAt > st.Now {
		lease = st.ExpiresAt.Time()
	}
	switch v.Reason {
	case core.NothingQueued:
		return "nothing is queued, claimed or dead for this id", until
	case core.OnlyDead:
		return "it is in the morgue; revive it to run it again", until
	case core.RunsNow:
		return "it runs on " + v.taken(), until
	case core.InBuffer:
		return "it is taken by " + v.taken() + ": it runs, or is about to", until
	case core.PredecessorRuns:
		return "its predecessor is taken by " + v.taken() + "; what came since runs after it", until
	case core.OwnerGone:
		return "the lease is over of " + v.taken() + ", which had it; " + v.successor(), lease
	case core.QueuePaused:
		return "the queue is paused; resume it", until
	case core.BacksOff:
		return fmt.Sprintf("backoff after failure %d, runs in %v", v.Found.Queued.Retries, v.due()), v.Found.Queued.PerformAt
	case core.NotDueYet:
		return fmt.Sprintf("it is not due, runs in %v", v.due()), v.Found.Queued.PerformAt
	case core.NobodyServes:
		return "no server serves the queue", until
	case core.ShardUnowned:
		return fmt.Sprintf("no server has shard %v; %s", v.Found.Shard, v.successor()), until
	case core.WaitsForAlone:
		return fmt.Sprintf("job %q has lost its process so often that it runs alone, and comes first", v.Alone), until
	case core.RunsAlone:
		return fmt.Sprintf("it has lost its process so often that it runs alone, and %d jobs of its shard are still taken", st.Claimed), until
	case core.BehindOthers:
		if v.Ahead == ports.MaxAhead {
			return fmt.Sprintf("%d due jobs of its shard or more are in front", v.Ahead), until
		}
		return fmt.Sprintf("due jobs of its shard in front: %d", v.Ahead), until
	}
	return "it is next; the server that has the shard claims it", until
}

// taken says who has claimed it, and since when.
func (v *Verdict) taken() string {
	c := v.Found.Claimed
	return fmt.Sprintf("server %s for %v", c.Node, v.Now.Sub(c.Since).Round(time.Millisecond))
}

// successor says who takes the shard.
func (v *Verdict) successor() string {
	if len(v.Servers) == 0 {
		return "no server serves the queue"
	}
	return fmt.Sprintf("one of %d servers of the queue takes the shard", len(v.Servers))
}

// due is in how long the queued job may run.
func (v *Verdict) due() time.Duration {
	return v.Found.Queued.PerformAt.Sub(v.Now).Round(time.Millisecond)
}
