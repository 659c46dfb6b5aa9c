package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Verdict is the reason why the job of an id does not run, or the information that it runs.
type Verdict struct {
	// Reason is the first reason that applies.
	Reason Reason
	// Sentence is the reason for people, and Text the same as a string.
	Sentence Sentence
	Text     string
	// Findings are the facts behind the reason, as a checklist.
	Findings []Finding
	// Until is when the reason ends by itself, by the store's clock: when the job becomes due, or
	// when the lease of the shard ends. It is zero if this time is unknown.
	Until time.Time
	// Now is the store's clock when the job was looked up.
	Now time.Time
	// Paused is true if the queue is paused.
	Paused bool
	// Ahead is the number of due jobs of the shard that are claimed before this one, at most 1,000.
	Ahead int
	// Alone is the id of a job that must run alone and runs before this one. It is empty if there
	// is no such job.
	Alone string
	// RunningSince is when the handler of the claimed job began, as its server last announced. It
	// is zero if no handler runs, if the handler began after the last announcement, or if the job
	// is not among the [ports.MaxLongest] jobs that the server names.
	RunningSince time.Time
	// MaxRetries is the maximum number of retries of the queue's jobs. MaxRunning is the maximum
	// number of its batches that may run at once over all servers; 0 means no limit. Busy is the
	// number of its batches that run. All three are as the servers last announced, and 0 if no
	// server serves the queue. If servers announce different limits, the largest is used.
	MaxRetries int
	MaxRunning int
	Busy       int
	// Rate is the rate at which batches of the queue start over all servers, as the shard's owner last
	// announced it, or else the fastest that a server announces. It is empty if there is none.
	// NextSlot is when the rate allows the next start: Now, or later. StoppedUntil is when a stop of
	// the rate ends, and zero if none lasts. NextSlot is zero if the queue has no rate, no due job of
	// the id, or if the limiter can't be read.
	Rate         string
	NextSlot     time.Time
	StoppedUntil time.Time
	// Servers are the names of the servers that serve the queue and don't drain.
	Servers []string
	// Drains are the names of the servers that serve the queue and drain. LastServer is the last
	// server that served the queue, until LastServed, among the servers that are gone and still
	// listed. It is empty if there is no such server.
	Drains     []string
	LastServer string
	LastServed time.Time
	// ServersUnknown is true if the list of servers could not be read within [ServersPatience], for
	// example because its part of the store can't be reached. The fields about servers are then
	// empty, and Reason is derived from the shard's state only.
	ServersUnknown bool
	// Owner is the name of the server that owns the shard. OwnerFacts are what it last announced of
	// its lanes and of the queue's limits there. Both are zero if no server owns the shard, or if
	// its server no longer announces itself.
	Owner      string
	OwnerFacts OwnerFacts
	// Found is what the queue holds for the id, without payloads.
	Found Found
	// StaleDead is true if the dead letter has a payload that is not newer than what was done of
	// the id, in a queue with skein.DropStale. Then [Inspector.Revive] leaves it in the morgue
	// unless it is forced.
	StaleDead bool
	// Schedules are the first schedules of the id, in order of name, if Reason is [Scheduled] or
	// [OnlyDead].
	Schedules []Schedule

	// leaseOf is the name of the server with the shard's last lease. busy lists the servers that
	// run batches of the queue, with their number.
	leaseOf string
	busy    []string
	// runningSet and lanesSet are true if an operator has set MaxRunning and the owner's MaxLanes.
	runningSet, lanesSet bool
	// rate is Rate, parsed. ownRate is that of the shard's owner, or nil if it announces none for the
	// queue yet.
	rate    core.Rate
	ownRate *core.Rate
}

// ServersPatience is the maximum time that Why waits for the list of servers.
const ServersPatience = 2 * time.Second

// Why returns the reason why the job of an id does not run. It reads the job's shard once and the
// list of servers once. If the queue has no job of the id, it reads the id's schedules. Servers
// announce their running jobs and their limits at each third of their LeaseTTL, so Why may be
// behind by that time. Why reads no payload, except the first one of a dead letter of an id with a
// mark. Errors are those of [Inspector.Find].
func (i *Inspector) Why(ctx context.Context, queue, id string) (Verdict, error) {
	stored, err := ask(i, func(s Store) (ports.Found, error) {
		return s.Find(ctx, ports.FindRequest{Queue: queue, ID: id})
	})
	if err != nil {
		return Verdict{}, err
	}

	// The part of the store with the list of servers may be out of reach. The verdict then does
	// without the list.
	brief, cancel := context.WithTimeout(ctx, ServersPatience)
	defer cancel()
	nodes, err := ask(i, func(s Store) (ports.NodesReply, error) { return s.Nodes(brief) })
	if err != nil && (refused(err) || ctx.Err() != nil) {
		return Verdict{}, err
	}

	st := stored.Standing
	v := Verdict{
		ServersUnknown: err != nil,
		Now:            st.Now.Time(),
		Paused:         st.Paused,
		Ahead:          st.Ahead,
		Alone:          st.Alone,
		Found:          i.views.found(id, &stored),
	}

	for at := range nodes.Nodes {
		n := &nodes.Nodes[at]
		if n.Owner == st.Owner {
			v.leaseOf = n.Name
		}
		if n.State(nodes.Now) == NodeGone {
			v.served(n, queue)
		} else {
			v.take(n, queue, &stored)
		}
	}

	served := len(v.Servers)
	if v.ServersUnknown {
		served = 1 // nothing shows that no server does
	}
	f := factsOf(&stored, served)
	f.LimitReached = v.limitReached()
	f.Owner = v.OwnerFacts
	if err := v.limiter(ctx, i, queue, &stored); err != nil {
		return Verdict{}, err
	}
	_, f.RateWaits = v.rateState()

	if v.StaleDead, err = i.staleDead(ctx, queue, &stored); err != nil {
		return Verdict{}, err
	}

	if r := reasonOf(&f); r == NothingQueued || r == OnlyDead {
		if v.Schedules, err = i.schedulesOf(ctx, stored.Shard, id); err != nil {
			return Verdict{}, err
		}
		f.Scheduled = len(v.Schedules) > 0
	}

	switch shard, o := stored.Shard, &v.OwnerFacts; {
	case stored.Queued != nil:
		f.BehindLastChance = o.behindLastChance(shard, id, &stored.Queued.State)
	case stored.Claim != nil:
		f.BehindLastChance = o.behindLastChance(shard, id, &stored.Claim.State)
	}

	f.Running = f.Running || !v.RunningSince.IsZero()
	v.Reason = reasonOf(&f)
	v.Sentence, v.Until = v.sentence(&st)
	v.Text = v.Sentence.String()
	v.Findings = v.findings()
	return v, nil
}

// staleDead reports whether the dead letter that was found for an id has a stale payload. The first
// payload has the lowest score.
func (i *Inspector) staleDead(ctx context.Context, queue string, stored *ports.Found) (bool, error) {
	if stored.DeadLetter == nil || !stored.Mark.OK {
		return false, nil
	}

	r := ports.FindRequest{
		Queue:    queue,
		ID:       stored.DeadLetter.ID,
		Payloads: 1,
		MaxCount: -1,
		After:    &ports.PayloadCursor{Place: ports.PlaceDead},
	}
	found, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
	if err != nil || found.DeadLetter == nil || len(found.DeadLetter.Payloads) == 0 {
		return false, err
	}
	return found.Mark.Covers(found.DeadLetter.Payloads[0].Score), nil
}

// take adds the facts that a running server announces: about the queue, about its lanes if it has
// the shard, and about the claim if there is one. If servers announce different limits, the largest
// is used.
func (v *Verdict) take(n *ports.Node, queue string, stored *ports.Found) {
	st := &stored.Standing
	owns := n.Owner == st.Owner && st.ExpiresAt > st.Now
	if owns {
		v.Owner = n.Name
		v.OwnerFacts = OwnerFacts{
			Draining:   n.Draining,
			Lanes:      n.Lanes,
			Busy:       n.Status.Busy,
			LastChance: n.Status.LastChance,
		}
	}

	if slices.Contains(n.Queues, queue) {
		if n.Draining {
			v.Drains = append(v.Drains, n.Name)
		} else {
			v.Servers = append(v.Servers, n.Name)
		}
	}

	for _, q := range n.Status.Queues {
		if q.Queue == queue {
			if q.MaxRunning > v.MaxRunning {
				v.runningSet = isSet(&q, core.SettingMaxRunning, q.MaxRunning)
			}
			v.MaxRetries, v.MaxRunning, v.Busy =
				max(v.MaxRetries, q.MaxRetries), max(v.MaxRunning, q.MaxRunning), v.Busy+q.Busy
			if r, err := core.ParseRate(cmp.Or(q.Rate, noRate)); err == nil {
				v.rate = faster(v.rate, r)
				if owns {
					v.ownRate = &r
				}
			}
			if q.Busy > 0 {
				v.busy = append(v.busy, fmt.Sprintf("%s %d", n.Name, q.Busy))
			}
			if owns {
				o := &v.OwnerFacts
				o.MaxLanes, o.QueueBusy, o.Parallel, o.BatchSize, o.MaxRecoveries =
					q.MaxLanes, q.Busy, q.Parallel, q.BatchSize, q.MaxRecoveries
				v.lanesSet = isSet(&q, core.SettingMaxLanes, q.MaxLanes)
				o.LaneBusy = slices.Contains(q.LaneBusy, stored.Shard.Index)
			}
		}
	}

	claim := stored.Claim
	for _, j := range n.Status.Longest {
		if claim != nil && n.Owner == claim.Owner && j.Shard == claim.Shard && j.ID == claim.ID &&
			j.Receipt == claim.Receipt.Whole() {
			v.RunningSince = j.Began.Time()
		}
	}
}

// isSet reports whether a server announces that it follows an operator's value of a setting in place of
// its code's.
func isSet(q *ports.QueueStatus, name string, n int) bool {
	return q.SettingsVersion > 0 && cmp.Or(q.Code[name], "0") != strconv.Itoa(n)
}

// limitName returns the name of a limit, with a note if an operator has set it.
func limitName(name string, set bool) string {
	if set {
		return name + ", set by an operator"
	}
	return name
}

// noRate is the text of no rate.
const noRate = "none"

// limiter reads when the rate of the queue allows the next start, if the id has a due job and the
// queue a rate. An error is that of a caller whose context has ended.
func (v *Verdict) limiter(ctx context.Context, i *Inspector, queue string, stored *ports.Found) error {
	if v.ownRate != nil {
		v.rate = *v.ownRate
	}
	if v.rate == (core.Rate{}) {
		return nil
	}
	v.Rate = v.rate.String()
	if q := stored.Queued; q == nil || q.State.PerformAt > stored.Standing.Now {
		return nil
	}

	brief, cancel := context.WithTimeout(ctx, ServersPatience)
	defer cancel()
	limits, err := i.limits(brief, queue)
	if err != nil {
		return ctx.Err()
	}

	whole := wholeQueue(&limits)
	state := limiterState(queue, &whole, v.rate, limits.Now)
	// The limiter is read after the job: times are moved to the moment of the job's look.
	late := limits.Now.Time().Sub(v.Now)
	v.NextSlot = state.NextSlot.Add(-late)
	if !state.Stopped.IsZero() {
		v.StoppedUntil = state.Stopped
	}
	return nil
}

// rateState describes when the rate of the queue allows the next start, and reports whether a job
// waits for that.
func (v *Verdict) rateState() (s Sentence, waits bool) {
	switch {
	case !v.StoppedUntil.IsZero():
		return say("%s on all servers, stopped until %s, for %s more",
			v.Rate, v.StoppedUntil, v.StoppedUntil.Sub(v.Now)), true
	case v.NextSlot.After(v.Now):
		return say("%s on all servers, the next start in %s", v.Rate, v.NextSlot.Sub(v.Now)), true
	}
	return say("%s on all servers, and a start is allowed now", v.Rate), false
}

// limitReached reports whether as many batches of the queue run as its limit allows.
func (v *Verdict) limitReached() bool { return v.MaxRunning > 0 && v.Busy >= v.MaxRunning }

// served notes a server that served the queue and is gone.
func (v *Verdict) served(n *ports.Node, queue string) {
	if until := n.ExpiresAt.Time(); slices.Contains(n.Queues, queue) && until.After(v.LastServed) {
		v.LastServer, v.LastServed = n.Name, until
	}
}

// factsOf returns the facts that decide the reason.
func factsOf(stored *ports.Found, served int) facts {
	st := &stored.Standing
	f := facts{
		Now:         st.Now,
		Paused:      st.Paused,
		Served:      served,
		Owned:       st.Owner != "" && st.ExpiresAt > st.Now,
		Ahead:       st.Ahead,
		BehindAlone: st.Alone != "",
		ShardClaims: st.Claimed,
		Dead:        stored.DeadLetter != nil,
		Damaged:     len(stored.Damaged) > 0,
	}

	if q := stored.Queued; q != nil {
		f.Queued, f.State = true, q.State
	}
	if c := stored.Claim; c != nil {
		f.Claimed, f.Running, f.LeaseOver = true, c.Begun, c.LeaseOver
	}
	return f
}
