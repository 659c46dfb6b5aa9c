package conformance

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleAhead = "Standing: Ahead is how many due jobs of the shard are claimed before the queued one, by (PerformAt, id)"
	ruleFirst = "Standing: Alone is the id of another job that runs alone, and before the queued one"
)

func standingCases() []namedCase {
	return []namedCase{
		{"counts what is in front", ruleAhead, standingAhead},
		{"counts nothing for what is not due, claimed or absent", ruleAhead, standingNone},
		{"counts only so far", "Standing: Ahead is at most MaxAhead", standingFar},
		{"passes over claimed ids", ruleAhead, standingClaimed},
		{"names a claimed job that runs alone", ruleFirst, standingAloneClaimed},
		{"names a first job that runs alone", ruleFirst, standingAloneFirst},
		{"shows the lease", "Standing: Owner, Token and ExpiresAt are those of the shard's lease; all zero if the lease was released", standingLease},
		{"shows a pause", "Standing: Paused reports that the queue is paused", standingPaused},
	}
}

// stands checks the standing of an id.
func (e *env) stands(id string, ahead int, alone string) {
	e.tb.Helper()
	st := e.find(id).Standing
	e.same("what is ahead of "+id, st.Ahead, ahead)
	e.same("what runs alone before "+id, st.Alone, alone)
	e.same("the time", st.Now, e.now())
}

func standingAhead(e *env) {
	now := e.now()
	e.push(entryAt("late", "p", 1, now-3), entryAt("b", "p", 1, now-2), entryAt("a", "p", 1, now-2), entryAt("c", "p", 1, now))
	for i, id := range []string{"late", "a", "b", "c"} {
		e.stands(id, i, "")
	}
	e.push(entryAt("last", "p", 1, now+1))
	e.stands("last", 0, "")
	e.clock.Advance(time.Microsecond)
	e.stands("last", 4, "")
}

func standingNone(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	e.same("the jobs claimed", ids(h.claim(1)), []string{"a"})
	e.pushIDs("a")
	e.push(entryAt("c", "p", 1, e.now()+1))
	for _, id := range []string{"a", "c", "nowhere"} {
		e.stands(id, 0, "")
	}
}

func standingFar(e *env) {
	var entries []core.Entry
	for i := range ports.MaxAhead + 2 {
		entries = append(entries, entry(fmt.Sprintf("job-%04d", i), "p", 1))
	}
	for len(entries) > 0 {
		n := min(len(entries), 500)
		e.push(entries[:n]...)
		entries = entries[n:]
	}
	e.stands(fmt.Sprintf("job-%04d", ports.MaxAhead-1), ports.MaxAhead-1, "")
	e.stands(fmt.Sprintf("job-%04d", ports.MaxAhead+1), ports.MaxAhead, "")
}

func standingClaimed(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	h.claim(2)
	e.pushIDs("a", "b")
	e.stands("c", 0, "")
	e.same("the jobs of the shard that are claimed", e.find("c").Standing.Claimed, 2)
}

func standingAloneClaimed(e *env) {
	e.placeAlone("x", 10)
	e.push(entryAt("a", "p", 1, 20), entryAt("x2", "p", 1, 30))
	h := e.acquire("n1")
	e.same("the jobs claimed", ids(h.claim(10)), []string{"x"})
	e.stands("a", 0, "x")
	e.stands("x2", 1, "x")
	e.stands("x", 0, "")
}

func standingAloneFirst(e *env) {
	e.placeAlone("alone", start.Add(time.Hour))
	e.pushIDs("a")
	e.same("the jobs claimed", ids(e.acquire("n1").claim(10)), []string{"a"})
	e.clock.Advance(time.Hour + time.Second)
	e.push(entryAt("b", "p", 1, e.now()))
	e.stands("b", 1, "alone")
	e.stands("alone", 0, "")
}

func standingLease(e *env) {
	e.pushIDs("a")
	lease := func() ports.Standing {
		st := e.find("a").Standing
		return ports.Standing{Owner: st.Owner, Token: st.Token, ExpiresAt: st.ExpiresAt}
	}
	e.same("no lease", lease(), ports.Standing{})
	h := e.acquire("n1")
	e.same("the lease", lease(), ports.Standing{Owner: "n1", Token: h.lease.Token, ExpiresAt: e.stats(orders).Shards[0].ExpiresAt})
	h.release()
	e.same("a released lease", lease(), ports.Standing{})
}

func standingPaused(e *env) {
	e.pushIDs("a")
	e.pause(orders)
	e.same("whether it is paused", e.find("a").Standing.Paused, true)
	e.resume(orders)
	e.same("whether it is paused after it", e.find("a").Standing.Paused, false)
}
