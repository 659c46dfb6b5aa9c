package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// sentence returns the verdict's Sentence and Until.
func (v *Verdict) sentence(st *ports.Standing) (s Sentence, until time.Time) {
	lease := time.Time{}
	if st.Owner != "" && st.ExpiresAt > st.Now {
		lease = st.ExpiresAt.Time()
	}

	switch v.Reason {
	case NothingQueued:
		nothing := say("nothing is queued, claimed or dead for this id")
		if v.Found.Past != nil {
			return say("done %s", v.done()).then(nothing), until
		}
		return nothing, until
	case Scheduled:
		next, until := v.scheduled(st)
		return say("nothing is queued for this id").then(next), until
	case Unreadable:
		return say("the record of this id can't be read (%s)", strings.Join(v.Found.Damaged, ", ")).
			then(say("its next use sets it aside, and the list of unreadable records then has it")), until
	case OnlyDead:
		s := say("the id is only in the morgue")
		if p := v.Found.Past; p != nil && p.DoneAt.After(v.Found.DeadLetter.ChangedAt) {
			s = s.and(", and a later run was done %s", v.done())
		}
		if v.StaleDead {
			s = s.then(say("something as new was done of it, " +
				"so a revive leaves its dead letter there unless it is forced"))
		} else {
			s = s.then(say("revive its dead letter to run it again"))
		}
		if len(v.Schedules) == 0 {
			return s, until
		}
		next, until := v.scheduled(st)
		return s.and("; %s", next), until
	case RunsNow:
		return say("the job runs on %s", v.running()).then(v.hanging("the job")), until
	case BehindLastChance:
		return v.behindLastChance(), until
	case InBuffer:
		return say("the job is claimed by %s", v.taken()).then(say("its handler runs, or is about to run")), until
	case PredecessorRuns:
		after := say("the queued payloads run after it")
		if v.RunningSince.IsZero() {
			return say("an earlier job of this id is claimed by %s", v.taken()).then(after), until
		}
		return say("an earlier job of this id runs on %s", v.running()).
			then(after.and("; %s", v.hanging("the earlier job"))), until
	case OwnerGone:
		return v.orphaned(st).then(v.successor()), lease
	case Held:
		return say("held, since its retries or its recoveries are used up").
			then(say("later payloads wait behind it; release it, or bury its first payload")), until
	case QueuePaused:
		return say("the queue is paused").then(say("resume it")), until
	case BacksOff:
		return say("runs again in %s, after failure %s", v.due(), v.failures()).then(v.givesUp()), v.Found.Queued.PerformAt
	case NotDueYet:
		return say("not due yet, runs in %s", v.due()).
			then(say("it was pushed for later, its handler returned Snooze or Await, " +
				"or the rate of its key has no slot yet")), v.Found.Queued.PerformAt
	case NobodyServes:
		return v.nobody(), until
	case ShardUnowned:
		return say("no server has shard %s%s", v.Found.Shard, v.unowned(st)).then(v.successor()), until
	case WaitsForAlone:
		return say("%s comes first and runs alone, because it was recovered repeatedly", v.alone()).
			then(say("if its handler hangs, cancel and drop that job before its process is killed, or it runs again")), until
	case RunsAlone:
		return say(
			"the job runs alone, because it was recovered repeatedly, and %s jobs of its shard are still claimed",
			st.Claimed), until
	case AtLimit:
		return say("the queue is at its limit: %s", v.atLimit()).then(say("running now: %s", someOf(v.busy))), until
	case AtRate:
		return v.atRate(), v.NextSlot
	case AtKeyRate:
		return v.atKeyRate(), v.Found.Queued.PerformAt
	case OwnerDrains, LanesFull, ShardFull, LanesBusy:
		return v.held(st.Claimed), until
	case BehindOthers:
		return v.front(), until
	}
	return say("the job is next").then(say("the server that has the shard claims it")), until
}

// scheduled describes which schedule of the id pushes next, and when, or why none does. Notes and
// reasons are left out, since the text is shown to readers who may not see them.
func (v *Verdict) scheduled(st *ports.Standing) (next Sentence, until time.Time) {
	var s *Schedule
	for at := range v.Schedules {
		if next := &v.Schedules[at]; !next.Due.IsZero() && (s == nil || next.Due.Before(s.Due)) {
			s = next
		}
	}

	switch {
	case s == nil && slices.ContainsFunc(v.Schedules, func(s Schedule) bool {
		return s.Paused && s.Next < core.MaxInstant
	}):
		paused := slices.IndexFunc(v.Schedules, func(s Schedule) bool {
			return s.Paused && s.Next < core.MaxInstant
		})
		return say("its schedule %s is %s; resume it", v.Schedules[paused].Name, v.Schedules[paused].pause()), until
	case s == nil:
		return say("its schedule %s has no next tick; edit it", v.Schedules[0].Name), until
	case st.Paused:
		return say(
			"the queue is paused, and its schedule %s does not push until it is resumed; its next tick is at %s",
			s.Name, s.Next.Time()), until
	case s.Broken != "":
		return say(
			"a server can't read the spec of its schedule %s, and tries again each minute; look at the schedule",
			s.Name), until
	case s.Late == 0:
		return say("its schedule %s pushes at %s, in %s",
			s.Name, s.Due, s.Due.Sub(v.Now)), s.Due
	}

	late := say("the tick of its schedule %s is late, due for %s; ", s.Name, s.Late)
	switch {
	case v.ServersUnknown:
		return late.and("the server that has the shard pushes it"), until
	case len(v.Servers) == 0:
		return late.and("%s", v.nobody()), until
	case st.Owner == "" || st.ExpiresAt <= st.Now:
		return late.and("no server has shard %s%s; %s", v.Found.Shard, v.unowned(st), v.successor()), until
	}
	return late.and("the server that has the shard pushes it within a poll interval"), until
}

// pause states who paused the schedule, and when.
func (s *Schedule) pause() Sentence {
	paused := say("paused")
	if s.PausedBy != "" {
		paused = paused.and(" by %s", s.PausedBy)
	}
	if s.PausedAt > 0 {
		paused = paused.and(" since %s", s.PausedAt.Time())
	}
	return paused
}

// behindLastChance describes for which other job this one waits.
func (v *Verdict) behindLastChance() Sentence {
	return say("the job is on its last chance and runs after %s", v.lastChance()).
		then(say("one more crash of its process uses up its recoveries, and server %s runs one such job at a time", v.Owner))
}

// lastChance names the job on its last chance that the shard's owner runs.
func (v *Verdict) lastChance() Part {
	other := &v.OwnerFacts.LastChance
	return Part{Kind: PartJob, Shard: other.Shard, ID: other.ID}
}

// alone names the job that must run alone and runs before this one.
func (v *Verdict) alone() Part { return Part{Kind: PartJob, Shard: v.Found.Shard, ID: v.Alone} }

// atLimit describes how many batches run and how many may run. More may run than that, because some
// began under a higher limit, or because servers announced their numbers at different times.
func (v *Verdict) atLimit() Sentence {
	if v.Busy > v.MaxRunning {
		return say("%s running, and only %s may run now (%s)", v.Busy, v.MaxRunning, limitName("MaxRunning", v.runningSet))
	}
	return say("%s of %s running (%s)", v.Busy, v.MaxRunning, limitName("MaxRunning", v.runningSet))
}

// atRate describes when the rate of the queue allows the next start. A further start may need a
// further slot.
func (v *Verdict) atRate() Sentence {
	state, _ := v.rateState()
	s := say("the job waits for the rate of the queue: %s", state)
	if !v.StoppedUntil.IsZero() {
		s = s.then(say("a handler has returned SlowDown, or an operator has stopped the rate"))
	}
	if v.Ahead > 0 {
		return s.then(v.front())
	}
	return s
}

// atKeyRate describes when the rate of the job's key allows its start.
func (v *Verdict) atKeyRate() (s Sentence) {
	return say("the job waits for the rate of its key %s: its start is in %s",
		Part{Kind: PartKey, Text: v.Found.Queued.Slot}, v.due()).
		then(say("no push changes that; if the rate was raised since, run the job now, and it asks for a new start"))
}

// held describes why the server that has the shard claims no more jobs of it.
func (v *Verdict) held(claimed int) (s Sentence) {
	o := &v.OwnerFacts

	switch v.Reason {
	case OwnerDrains:
		return say("server %s, which has the shard, is draining", v.Owner).
			then(say("it claims no more jobs, and another server takes the shard when the running jobs have ended"))
	case LanesFull:
		s = say(
			"server %s, which has the shard, runs %s batches of the queue, "+
				"and no more than %s may run there (%s)",
			v.Owner, o.QueueBusy, o.MaxLanes, limitName("MaxLanes", v.lanesSet))
	case ShardFull:
		s = say(
			"server %s has claimed %s jobs of the shard, and runs no more than %s of its batches at once (Parallel)",
			v.Owner, claimed, o.Parallel)
	case LanesBusy:
		if o.LaneBusy {
			s = say(
				"the job waits for its lane: server %s works its shard with one lane, which runs a batch",
				v.Owner)
			break
		}
		s = say(
			"the job waits for a free lane: on server %s, which has the shard, %s of %s lanes run batches",
			v.Owner, o.Busy, o.Lanes)
	}

	if v.Ahead > 0 {
		return s.then(v.front())
	}
	return s
}

// front describes how many due jobs are in front.
func (v *Verdict) front() Sentence {
	if v.Ahead == ports.MaxAhead {
		return say("%s or more due jobs of its shard are in front", v.Ahead)
	}
	return say("due jobs of its shard in front: %s", v.Ahead)
}

// inFront is front for a line of its own.
func (v *Verdict) inFront() Sentence {
	if v.Ahead == 0 {
		return say("no due job of its shard")
	}
	return v.front()
}

// taken describes which server has claimed the job, and since when.
func (v *Verdict) taken() Sentence {
	c := v.Found.Claimed
	return say("server %s for %s", c.Node, v.Now.Sub(c.Since))
}

// orphaned describes the lease under which the job was claimed: whose it was, and when it expired,
// if that is known.
func (v *Verdict) orphaned(st *ports.Standing) Sentence {
	c := v.Found.Claimed
	over := say("has expired")
	if st.Owner == c.Owner && st.ExpiresAt <= st.Now {
		over = say("expired %s ago", v.Now.Sub(st.ExpiresAt.Time()))
	}
	return say("the lease of server %s %s; it claimed the job at %s",
		c.Node, over, c.Since)
}

// running describes which server runs the job, and since when.
func (v *Verdict) running() Sentence {
	if v.RunningSince.IsZero() {
		return v.taken()
	}
	return say("server %s for %s", v.Found.Claimed.Node, v.Now.Sub(v.RunningSince))
}

// hanging describes what becomes of a running job if its handler hangs. Such a handler ends only
// with its process, and then the job is recovered, unless it was cancelled and dropped.
func (v *Verdict) hanging(job string) Sentence {
	switch c := v.Found.Claimed; {
	case c.Cancelled && c.Drop:
		return say("%s is cancelled, and is dropped once its handler returns or its process ends", job)
	case c.Cancelled:
		return say(
			"%s is cancelled, and runs again once its handler returns or its process ends, unless you drop it",
			job)
	}
	return say("if its handler hangs, cancel and drop %s before its process is killed, or it runs again", job)
}

// failures describes how often the queued job has failed, and how often it is retried, if that is
// known.
func (v *Verdict) failures() Sentence {
	if v.MaxRetries == 0 {
		return say("%s", v.Found.Queued.Retries)
	}
	return say("%s of %s", v.Found.Queued.Retries, v.MaxRetries)
}

// givesUp describes what happens after the last retry of the queued job, if its number is known.
func (v *Verdict) givesUp() Sentence {
	switch left := v.MaxRetries + 1 - v.Found.Queued.Retries; {
	case v.MaxRetries == 0:
		return nil
	case left > 1:
		return say("after %s more failures its first payload goes to the morgue, or the job is held", left)
	}
	return say("with its next failure its first payload goes to the morgue, or the job is held")
}

// successor describes which servers may take the shard.
func (v *Verdict) successor() Sentence {
	if len(v.Servers) == 0 {
		return v.nobody()
	}
	return say("one of %s servers of the queue takes the shard", len(v.Servers))
}

// nobody states that no server serves the queue, and names the last one that did.
func (v *Verdict) nobody() Sentence {
	nobody := say("no server serves the queue")
	if len(v.Drains) > 0 {
		nobody = nobody.and(", and these are draining: %s", someOf(v.Drains))
	}
	if v.LastServer != "" {
		nobody = nobody.then(say("the last was server %s, until %s, %s ago",
			v.LastServer,
			v.LastServed,
			v.Now.Sub(v.LastServed).Round(time.Second)))
	}
	return nobody
}

// unowned describes how long no server has had the shard, if that is known.
func (v *Verdict) unowned(st *ports.Standing) Sentence {
	if st.Owner == "" {
		return nil
	}
	return say(" since the lease of %s ended %s ago",
		cmp.Or(v.leaseOf, st.Owner), v.Now.Sub(st.ExpiresAt.Time()))
}

// most is the maximum number of servers that a text names.
const most = 5

// someOf lists the first few of several.
func someOf(list []string) string {
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// due returns the time until the queued job may run.
func (v *Verdict) due() time.Duration { return v.Found.Queued.PerformAt.Sub(v.Now) }
