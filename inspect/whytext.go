package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// say returns the verdict's Text and Until.
func (v *Verdict) say(stored *ports.Found) (text string, until time.Time) {
	st, lease := &stored.Standing, time.Time{}
	if st.Owner != "" && st.ExpiresAt > st.Now {
		lease = st.ExpiresAt.Time()
	}

	switch v.Reason {
	case NothingQueued:
		return "nothing is queued, claimed or dead for this id", until
	case Scheduled:
		text, until := v.scheduled(st)
		return "nothing is queued for this id; " + text, until
	case Unreadable:
		return fmt.Sprintf(
			"the record of this id can't be read (%s); its next use sets it aside, "+
				"and the list of unreadable records then has it",
			strings.Join(v.Found.Damaged, ", ")), until
	case OnlyDead:
		text := "the id is only in the morgue; revive its dead letter to run it again"
		if len(v.Schedules) == 0 {
			return text, until
		}
		next, until := v.scheduled(st)
		return text + "; " + next, until
	case RunsNow:
		return "the job runs on " + v.running() + v.hanging("the job"), until
	case BehindLastChance:
		return v.behindLastChance(), until
	case InBuffer:
		return "the job is claimed by " + v.taken() + "; its handler runs, or is about to run", until
	case PredecessorRuns:
		if !v.RunningSince.IsZero() {
			return "an earlier job of this id runs on " + v.running() + "; the queued payloads run after it" +
				v.hanging("the earlier job"), until
		}
		return "an earlier job of this id is claimed by " + v.taken() + "; the queued payloads run after it", until
	case OwnerGone:
		return v.orphaned(st) + "; " + v.successor(), lease
	case Held:
		return "it is held, since its retries or its recoveries are used up, and later payloads wait behind it; " +
			"release it, or bury its first payload", until
	case QueuePaused:
		return "the queue is paused; resume it", until
	case BacksOff:
		return fmt.Sprintf("backoff after failure %s, runs in %v", v.failures(), v.due()), v.Found.Queued.PerformAt
	case NotDueYet:
		return fmt.Sprintf(
			"the job is not due yet: it was pushed for later, or its handler returned Snooze or Await; it runs in %v",
			v.due()), v.Found.Queued.PerformAt
	case NobodyServes:
		return v.nobody(), until
	case ShardUnowned:
		return fmt.Sprintf("no server has shard %v%s; %s", v.Found.Shard, v.unowned(st), v.successor()), until
	case WaitsForAlone:
		return fmt.Sprintf(
			"job %q comes first and runs alone, because it was recovered repeatedly; "+
				"if its handler hangs, cancel and drop that job before its process is killed, or it runs again",
			v.Alone), until
	case RunsAlone:
		return fmt.Sprintf(
			"the job runs alone, because it was recovered repeatedly, and %d jobs of its shard are still claimed",
			st.Claimed), until
	case AtLimit:
		return fmt.Sprintf("the queue is at its limit: %s: %s", v.atLimit(), someOf(v.busy)), until
	case OwnerDrains, LanesFull, ShardFull, LanesBusy:
		return v.held(st.Claimed), until
	case BehindOthers:
		return v.front(), until
	}
	return "the job is next; the server that has the shard claims it", until
}

// scheduled describes which schedule of the id pushes next, and when, or why none does. Notes and
// reasons are left out, since the text is shown to readers who may not see them.
func (v *Verdict) scheduled(st *ports.Standing) (text string, until time.Time) {
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
		return v.Schedules[paused].pause() + "; resume it", until
	case s == nil:
		return fmt.Sprintf("its schedule %s has no next tick; edit it", v.Schedules[0].Name), until
	case st.Paused:
		return fmt.Sprintf(
			"the queue is paused, and its schedule %s does not push until it is resumed; its next tick is at %s",
			s.Name, s.Next.Time().Format(time.RFC3339)), until
	case s.Broken != "":
		return fmt.Sprintf(
			"a server can't read the spec of its schedule %s, and tries again each minute; look at the schedule",
			s.Name), until
	case s.Late == 0:
		return fmt.Sprintf("its schedule %s pushes at %s, in %v",
			s.Name, s.Due.Format(time.RFC3339), s.Due.Sub(v.Now).Round(time.Millisecond)), s.Due
	}

	text = fmt.Sprintf("the tick of its schedule %s is late, due for %v; ", s.Name, s.Late.Round(time.Millisecond))
	switch {
	case v.ServersUnknown:
		return text + "the server that has the shard pushes it", until
	case len(v.Servers) == 0:
		return text + v.nobody(), until
	case st.Owner == "" || st.ExpiresAt <= st.Now:
		return text + fmt.Sprintf("no server has shard %v%s; %s", v.Found.Shard, v.unowned(st), v.successor()), until
	}
	return text + "the server that has the shard pushes it within a poll interval", until
}

// pause states who paused the schedule, and when.
func (s *Schedule) pause() string {
	text := fmt.Sprintf("its schedule %s is paused", s.Name)
	if s.PausedBy != "" {
		text += " by " + s.PausedBy
	}
	if s.PausedAt > 0 {
		text += " since " + s.PausedAt.Time().Format(time.RFC3339)
	}
	return text
}

// behindLastChance describes for which other job this one waits. It names a job of the same queue.
func (v *Verdict) behindLastChance() string {
	other := v.OwnerFacts.LastChance
	what := fmt.Sprintf("a job of %v", other.Shard)
	if other.Shard.Queue == v.Found.Shard.Queue {
		what = fmt.Sprintf("job %q of %v", other.ID, other.Shard)
	}
	return fmt.Sprintf("the job is on its last chance, since one more crash of its process uses up its recoveries, "+
		"and server %s runs one such job at a time; it runs after %s", v.Owner, what)
}

// atLimit describes how many batches run and how many may run. More may run than that, because some
// began under a higher limit, or because servers announced their numbers at different times.
func (v *Verdict) atLimit() string {
	if v.Busy > v.MaxRunning {
		return fmt.Sprintf("%d running, and only %d may run now (MaxRunning)", v.Busy, v.MaxRunning)
	}
	return fmt.Sprintf("%d of %d running (MaxRunning)", v.Busy, v.MaxRunning)
}

// held describes why the server that has the shard claims no more jobs of it.
func (v *Verdict) held(claimed int) (text string) {
	o := &v.OwnerFacts

	switch v.Reason {
	case OwnerDrains:
		return fmt.Sprintf(
			"server %s, which has the shard, is draining: it claims no more jobs, "+
				"and another server takes the shard when the running jobs have ended",
			v.Owner)
	case LanesFull:
		text = fmt.Sprintf(
			"server %s, which has the shard, runs %d batches of the queue, "+
				"and no more than %d may run there (MaxLanes)",
			v.Owner, o.QueueBusy, o.MaxLanes)
	case ShardFull:
		text = fmt.Sprintf(
			"server %s has claimed %d jobs of the shard, and runs no more than %d of its batches at once (Parallel)",
			v.Owner, claimed, o.Parallel)
	case LanesBusy:
		if o.LaneBusy {
			text = fmt.Sprintf(
				"the job waits for its lane: server %s works its shard with one lane, which runs a batch",
				v.Owner)
			break
		}
		text = fmt.Sprintf(
			"the job waits for a free lane: on server %s, which has the shard, %d of %d lanes run batches",
			v.Owner, o.Busy, o.Lanes)
	}

	if v.Ahead > 0 {
		text += "; " + v.front()
	}
	return text
}

// front describes how many due jobs are in front.
func (v *Verdict) front() string {
	if v.Ahead == ports.MaxAhead {
		return fmt.Sprintf("%d or more due jobs of its shard are in front", v.Ahead)
	}
	return fmt.Sprintf("due jobs of its shard in front: %d", v.Ahead)
}

// taken describes which server has claimed the job, and since when.
func (v *Verdict) taken() string {
	c := v.Found.Claimed
	return fmt.Sprintf("server %s for %v", c.Node, v.Now.Sub(c.Since).Round(time.Millisecond))
}

// orphaned describes the lease under which the job was claimed: whose it was, and when it expired,
// if that is known.
func (v *Verdict) orphaned(st *ports.Standing) string {
	c := v.Found.Claimed
	over := "has expired"
	if st.Owner == c.Owner && st.ExpiresAt <= st.Now {
		over = fmt.Sprintf("expired %v ago", v.Now.Sub(st.ExpiresAt.Time()).Round(time.Millisecond))
	}
	return fmt.Sprintf("the lease of server %s %s; it claimed the job at %s",
		c.Node, over, c.Since.UTC().Format(time.RFC3339))
}

// running describes which server runs the job, and since when.
func (v *Verdict) running() string {
	if v.RunningSince.IsZero() {
		return v.taken()
	}
	return fmt.Sprintf("server %s for %v", v.Found.Claimed.Node, v.Now.Sub(v.RunningSince).Round(time.Millisecond))
}

// hanging describes what becomes of a running job if its handler hangs. Such a handler ends only
// with its process, and then the job is recovered, unless it was cancelled and dropped.
func (v *Verdict) hanging(job string) string {
	switch c := v.Found.Claimed; {
	case c.Cancelled && c.Drop:
		return fmt.Sprintf("; %s is cancelled, and is dropped once its handler returns or its process ends", job)
	case c.Cancelled:
		return fmt.Sprintf(
			"; %s is cancelled, and runs again once its handler returns or its process ends, unless you drop it",
			job)
	}
	return fmt.Sprintf("; if its handler hangs, cancel and drop %s before its process is killed, or it runs again", job)
}

// failures describes how often the queued job has failed, and how often it is retried, if that is
// known.
func (v *Verdict) failures() string {
	if v.MaxRetries == 0 {
		return strconv.Itoa(v.Found.Queued.Retries)
	}
	return fmt.Sprintf("%d of %d", v.Found.Queued.Retries, v.MaxRetries)
}

// successor describes which servers may take the shard.
func (v *Verdict) successor() string {
	if len(v.Servers) == 0 {
		return v.nobody()
	}
	return fmt.Sprintf("one of %d servers of the queue takes the shard", len(v.Servers))
}

// nobody states that no server serves the queue, and names the last one that did.
func (v *Verdict) nobody() string {
	text := "no server serves the queue"
	if len(v.Drains) > 0 {
		text += ", and these are draining: " + someOf(v.Drains)
	}
	if v.LastServer != "" {
		text += fmt.Sprintf("; the last was server %s, until %s, %v ago",
			v.LastServer,
			v.LastServed.UTC().Format(time.RFC3339),
			v.Now.Sub(v.LastServed).Round(time.Second))
	}
	return text
}

// unowned describes how long no server has had the shard, if that is known.
func (v *Verdict) unowned(st *ports.Standing) string {
	if st.Owner == "" {
		return ""
	}
	return fmt.Sprintf(" since the lease of %s ended %v ago",
		cmp.Or(v.leaseOf, st.Owner), v.Now.Sub(st.ExpiresAt.Time()).Round(time.Millisecond))
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
func (v *Verdict) due() time.Duration {
	return v.Found.Queued.PerformAt.Sub(v.Now).Round(time.Millisecond)
}
