package inspect

import (
	"fmt"
	"strconv"
	"time"

	"github.com/skeinq/skein/internal/specs"
)

// Finding is a fact behind a verdict: a line of its checklist.
type Finding struct {
	// Name is the subject, such as lane or due.
	Name  string
	State FindingState
	// Value is the fact.
	Value Sentence
}

// FindingState reports whether a fact lets the job run.
type FindingState uint8

// The states of findings.
const (
	FindingUnknown FindingState = iota
	// FindingGood is a fact that lets the job run.
	FindingGood
	// FindingBad is a fact that keeps the job from running, or may do so.
	FindingBad
)

// The names of findings that repeat what the records of the job, of the dead letter and of the id have.
const (
	FindingFailures = "failures"
	FindingMorgue   = "morgue"
	FindingPast     = "last done"
	FindingMark     = "done up to"
)

// findings are the lines of a checklist while it is made.
type findings []Finding

// add adds a line, whose value is as of say.
func (f *findings) add(name string, good bool, format string, args ...any) {
	state := FindingBad
	if good {
		state = FindingGood
	}
	*f = append(*f, Finding{name, state, say(format, args...)})
}

// findings returns the checklist of the verdict.
func (v *Verdict) findings() []Finding {
	var list findings
	list.addServers(v)
	list.addQueued(v)

	for at := range v.Schedules {
		s := &v.Schedules[at]
		list.add("schedule", !s.Due.IsZero() && s.Late == 0 && s.Broken == "",
			"%s, %s in %s: %s", s.Name, specs.Words(s.Spec), specs.Zone(s.Spec), s.state())
	}
	if v.Reason == BehindLastChance {
		list.add("last chance", false, "taken by %s", v.lastChance())
	}
	if v.MaxRunning > 0 {
		list.add("limit", v.runs() || !v.limitReached(), "%s", v.inUse(v.Busy, v.MaxRunning,
			"running on all servers ("+limitName("MaxRunning", v.runningSet)+")", ", or the servers' reports are of different moments"))
	}
	if !v.NextSlot.IsZero() {
		state, waits := v.rateState()
		list.add("rate", !waits, "%s", state)
	}
	if d := v.Found.DeadLetter; d != nil {
		list.add(FindingMorgue, v.Reason != OnlyDead, "payloads there: %s, the last failure%s",
			d.PayloadCount, v.lastFailure(&d.LastFailure))
	}
	if v.StaleDead && v.Reason != OnlyDead { // the sentence of OnlyDead says it
		list.add("revive", false,
			"leaves the dead letter in the morgue unless it is forced, since something as new was done")
	}
	if v.Found.Past != nil {
		list.add(FindingPast, true, "%s", v.done())
	}
	if m := v.Found.Mark; m != nil && (v.Found.Past == nil || v.Found.Past.Score != *m) {
		list.add(FindingMark, true, "score %s", strconv.FormatFloat(*m, 'f', -1, 64))
	}
	return list
}

// addServers adds what is known of the servers of the queue and of the owner of the job's shard.
func (f *findings) addServers(v *Verdict) {
	switch {
	case v.ServersUnknown:
		*f = append(*f, Finding{"served", FindingUnknown, say("the list of servers can't be read now")})
	case len(v.Servers) == 0:
		f.add("served", false, "no server runs this queue")
	default:
		f.add("served", true, "by %s", someOf(v.Servers))
	}

	o := &v.OwnerFacts
	switch c := v.Found.Claimed; {
	case v.Owner != "":
		draining := map[bool]string{true: ", which is draining"}[o.Draining]
		f.add("shard", !o.Draining, "%s, held by %s%s", v.Found.Shard, v.Owner, draining)
		if o.Lanes > 0 {
			f.add("lane", v.runs() || !o.lanesBusy(), "%s", v.inUse(o.Busy, o.Lanes, "lanes there are busy", ""))
		}
		if o.MaxLanes > 0 {
			f.add("lanes of the queue", v.runs() || !o.lanesFull(), "%s",
				v.inUse(o.QueueBusy, o.MaxLanes, "there are busy"+map[bool]string{true: " (set by an operator)"}[v.lanesSet], ""))
		}
	case c != nil && !c.LeaseOver:
		f.add("shard", true, "%s, held by %s", v.Found.Shard, c.Node)
	default:
		f.add("shard", v.ServersUnknown, "%s: no known running server has it", v.Found.Shard)
	}
}

// addQueued adds what the queued job waits for, if there is one.
func (f *findings) addQueued(v *Verdict) {
	q := v.Found.Queued
	if q == nil {
		return
	}

	if v.Found.Claimed != nil {
		f.add("id free", false, "its previous run must end first")
	}
	f.add("queue", !v.Paused, map[bool]string{true: "paused", false: "active"}[v.Paused])

	switch {
	case q.Held:
		f.add("due", false, "never, until it is released")
	case q.PerformAt.After(v.Now):
		f.add("due", false, "in %s", v.due())
	default:
		f.add("due", true, "for %s", -v.due())
	}

	f.add("in front", v.Ahead == 0, "%s", v.inFront())
	if v.Alone != "" {
		f.add("alone", false, "%s runs alone, and comes first", v.alone())
	}
	if q.Retries > 0 {
		f.add(FindingFailures, false, "%s, the last%s", v.failures(), v.lastFailure(&q.LastFailure))
	}
}

// lastFailure describes when a failure was, where, and its error, as far as that is known.
func (v *Verdict) lastFailure(f *LastFailure) (s Sentence) {
	if !f.LastFailedAt.IsZero() {
		s = s.and(" %s ago", v.Now.Sub(f.LastFailedAt))
	}
	if f.LastFailedOn != "" {
		s = s.and(" on %s", f.LastFailedOn)
	}
	return s.and(": %s", Part{Kind: PartError, Text: f.LastError})
}

// runs reports whether a job of the id is known to run, so that it is among those in use.
func (v *Verdict) runs() bool { return v.Reason == RunsNow || !v.RunningSince.IsZero() }

// inUse describes the use of a limit. More may be in use than the limit allows: some began under a
// higher limit and still run, or for the reason orElse.
func (v *Verdict) inUse(busy, most int, what, orElse string) string {
	text := fmt.Sprintf("%d of %d %s", busy, most, what)
	if busy > most {
		text = fmt.Sprintf("%d %s, more than the limit of %d: some began under a higher limit%s",
			busy, what, most, orElse)
	}
	if v.runs() && busy >= most {
		text += ", this id among them"
	}
	return text
}

// state describes when the schedule pushes next, or why it does not.
func (s *Schedule) state() Sentence {
	switch {
	case s.Paused && s.Note != "":
		return s.pause().and(": %s", Part{Kind: PartNote, Text: s.Note})
	case s.Paused:
		return s.pause()
	case s.Broken != "":
		return say("a server can't read its spec: %s", Part{Kind: PartError, Text: s.Broken})
	case s.Due.IsZero():
		return say("no next tick")
	case s.Late > 0:
		return say("late by %s", s.Late)
	}
	return say("next tick at %s", s.Due.UTC().Format(time.RFC3339))
}
