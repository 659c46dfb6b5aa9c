package inspect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	// RunningSince is when the handler of the job that is taken began, as its server last announced; zero if
	// none runs, or if it has begun since then, or is not among the [ports.MaxLongest] jobs that the server names.
	RunningSince time.Time
	// MaxRetries is how often the queue's jobs are retried, and MaxRunning how many of its batches may run over all
	// servers (0 is no bound), of which Busy run, all as the servers last announced. They are 0 if none serves it.
	MaxRetries int
	MaxRunning int
	Busy       int
	// Servers are the names of the servers that serve the queue and don't drain.
	Servers []string
	// ServersUnknown says that the list of servers could not be read within [ServersPatience], as where the part of
	// the store that has it is away. What they say is missing then, and Reason is by what the shard says alone.
	ServersUnknown bool
	// Owner is the name of the server that has the shard, and what it last announced of its lanes and of the queue's
	// bounds there; zero if nobody has the shard, or its server no longer announces itself.
	Owner      string
	OwnerFacts core.OwnerFacts
	// Found is what the queue holds for the id.
	Found Found
}

// ServersPatience is how long Why waits for the list of servers.
const ServersPatience = 2 * time.Second

// Why returns why the job of an id does not run, or that it does: one look at its shard and one at the list of
// servers, which say what they run and their limits at each third of their LeaseTTL. Errors are those of [Inspector.Find].
func (i *Inspector) Why(ctx context.Context, queue, id string) (Verdict, error) {
	stored, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, queue, id) })
	if err != nil {
		return Verdict{}, err
	}
	brief, cancel := context.WithTimeout(ctx, ServersPatience)
	defer cancel()
	nodes, err := ask(i, func(s Store) (ports.NodesReply, error) { return s.Nodes(brief) })
	if err != nil && (refused(err) || ctx.Err() != nil) {
		return Verdict{}, err
	}
	st := stored.Standing
	v := Verdict{ServersUnknown: err != nil, Now: st.Now.Time(), Ahead: st.Ahead, Alone: st.Alone, Found: i.views.found(id, &stored)}
	for _, n := range nodes.Nodes {
		if n.State(nodes.Now) != NodeGone {
			v.take(&n, queue, &stored)
		}
	}
	served := len(v.Servers)
	if v.ServersUnknown {
		served = 1 // nothing says that nobody does
	}
	f := factsOf(&stored, served)
	f.LimitReached = v.MaxRunning > 0 && v.Busy >= v.MaxRunning
	f.Owner = v.OwnerFacts
	f.Running = f.Running || !v.RunningSince.IsZero()
	v.Reason = core.Why(f)
	v.Text, v.Until = v.say(&stored)
	return v, nil
}

// take takes what a server that runs says of the queue, of its lanes if it has the shard, and of the claim if there
// is one. Of servers that were configured differently the bounds of the one that allows most count.
func (v *Verdict) take(n *ports.Node, queue string, stored *ports.Found) {
	if st := &stored.Standing; n.Owner == st.Owner && st.ExpiresAt > st.Now {
		v.Owner = n.Name
		v.OwnerFacts = core.OwnerFacts{Draining: n.Draining, Lanes: n.Lanes, Busy: n.Status.Busy}
	}
	if !n.Draining && slices.Contains(n.Queues, queue) {
		v.Servers = append(v.Servers, n.Name)
	}
	for _, q := range n.Status.Queues {
		if q.Queue == queue {
			v.MaxRetries, v.MaxRunning, v.Busy = max(v.MaxRetries, q.MaxRetries), max(v.MaxRunning, q.MaxRunning), v.Busy+q.Busy
			if n.Owner == stored.Standing.Owner {
				o := &v.OwnerFacts
				o.MaxLanes, o.QueueBusy, o.Parallel, o.BatchSize = q.MaxLanes, q.Busy, q.Parallel, q.BatchSize
			}
		}
	}
	claim := stored.Claim
	for _, j := range n.Status.Longest {
		if claim != nil && n.Owner == claim.Owner && j.Shard == claim.Shard && j.ID == claim.ID && j.Receipt == claim.Receipt {
			v.RunningSince = j.Began.Time()
		}
	}
}

// factsOf returns what core.Why asks for.
func factsOf(stored *ports.Found, served int) core.Facts {
	st := &stored.Standing
	f := core.Facts{
		Now: st.Now, Paused: st.Paused, Served: served, Owned: st.Owner != "" && st.ExpiresAt > st.Now,
		Ahead: st.Ahead, BehindAlone: st.Alone != "", ShardClaims: st.Claimed, Dead: stored.DeadLetter != nil,
		Damaged: len(stored.Damaged) > 0,
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
	case core.Unreadable:
		return fmt.Sprintf("what is stored of it can't be read (%s): the store sets it aside when it meets it, and Quarantined shows it then", strings.Join(v.Found.Damaged, ", ")), until
	case core.OnlyDead:
		return "it is in the morgue; revive it to run it again", until
	case core.RunsNow:
		return "it runs on " + v.running(), until
	case core.InBuffer:
		return "it is taken by " + v.taken() + ": it runs, or is about to", until
	case core.PredecessorRuns:
		if !v.RunningSince.IsZero() {
			return "its predecessor runs on " + v.running() + "; what came since runs after it", until
		}
		return "its predecessor is taken by " + v.taken() + "; what came since runs after it", until
	case core.OwnerGone:
		return "the lease is over of " + v.taken() + ", which had it; " + v.successor(), lease
	case core.QueuePaused:
		return "the queue is paused; resume it", until
	case core.BacksOff:
		return fmt.Sprintf("backoff after failure %s, runs in %v", v.failures(), v.due()), v.Found.Queued.PerformAt
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
	case core.AtLimit:
		return fmt.Sprintf("%d batches of the queue run over all servers, and no more than %d may", v.Busy, v.MaxRunning), until
	case core.OwnerDrains, core.LanesFull, core.ShardFull, core.LanesBusy:
		return v.held(st.Claimed), until
	case core.BehindOthers:
		return v.front(), until
	}
	return "it is next; the server that has the shard claims it", until
}

// held says what keeps the server that has the shard from claiming more of it.
func (v *Verdict) held(claimed int) (text string) {
	o := &v.OwnerFacts
	switch v.Reason {
	case core.OwnerDrains:
		return fmt.Sprintf("server %s, which has the shard, drains: it claims nothing more, and another server takes the shard when what runs has ended", v.Owner)
	case core.LanesFull:
		text = fmt.Sprintf("server %s, which has the shard, runs %d batches of the queue, and no more than %d may run there (MaxLanes)", v.Owner, o.QueueBusy, o.MaxLanes)
	case core.ShardFull:
		text = fmt.Sprintf("server %s has taken %d jobs of the shard, and runs no more than %d of its batches at once (Parallel)", v.Owner, claimed, o.Parallel)
	default:
		text = fmt.Sprintf("it waits for a free lane: all %d of server %s, which has the shard, run batches", o.Lanes, v.Owner)
	}
	if v.Ahead > 0 {
		text += "; " + v.front()
	}
	return text
}

// front says how much is in front.
func (v *Verdict) front() string {
	if v.Ahead == ports.MaxAhead {
		return fmt.Sprintf("%d due jobs of its shard or more are in front", v.Ahead)
	}
	return fmt.Sprintf("due jobs of its shard in front: %d", v.Ahead)
}

// taken says who has claimed it, and since when.
func (v *Verdict) taken() string {
	c := v.Found.Claimed
	return fmt.Sprintf("server %s for %v", c.Node, v.Now.Sub(c.Since).Round(time.Millisecond))
}

// running says where it runs, and since when.
func (v *Verdict) running() string {
	if v.RunningSince.IsZero() {
		return v.taken()
	}
	return fmt.Sprintf("server %s for %v", v.Found.Claimed.Node, v.Now.Sub(v.RunningSince).Round(time.Millisecond))
}

// failures says how often the queued job has failed, and of how many times if that is known.
func (v *Verdict) failures() string {
	if v.MaxRetries == 0 {
		return strconv.Itoa(v.Found.Queued.Retries)
	}
	return fmt.Sprintf("%d of %d", v.Found.Queued.Retries, v.MaxRetries)
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
