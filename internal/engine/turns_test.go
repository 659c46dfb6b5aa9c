package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// TestTurns replays transcripts of the turns of a shard: events are calls to the store and their
// answers, jobs that end, wake-ups and the passing of time.
func TestTurns(t *testing.T) {
	replayAll(t, "turns", func(w *script) {
		s := &turnsScript{script: w, info: scriptShard(1)}
		s.turns = newTurns(scriptConfig(), s.info)
		w.show = s.showState
		w.events = map[string]func(arguments){
			"acquired": s.acquired, "ran": s.ran, "unstarted": s.unstarted, "orphans": s.orphans, "part": s.part,
			"due": s.due, "turn": s.turn, "again": s.again, "answer": s.answer, "fails": s.fails, "overdue": s.overdue,
			"distrust": s.distrust, "tick": s.tick, "wakeup": s.wakeup, "listens": s.listens, "polled": s.polled,
			"renewed": s.renewed, "check": s.check, "lost": s.lost, "may-claim": s.mayClaim, "clock": s.clock,
		}
	})
}

type turnsScript struct {
	*script
	info  *shardInfo
	turns turns
	held  bool // the lease
}

// showState says what has changed of the state.
func (s *turnsScript) showState() {
	s.changed("turn needed", "%v", s.turns.needed())
	switch n, claim := &s.turns.news, s.turns.claim(); {
	case !claim.OK:
		s.changed("claimable", "no job")
	case n.headNotBefore > 0:
		s.changed("claimable", "later, since the last claim was empty")
	default:
		s.changed("claimable", "at %v", claim.Due.Sub(core.InstantOf(scriptStart)))
	}
	s.changed("responsive", "%v", !s.turns.unresponsive)
	s.changed("bytes of a claim", "%d KiB", s.turns.claimBytes>>10)
}

// sayIf says a text if a condition holds.
func (s *turnsScript) sayIf(condition bool, text string) {
	if condition {
		s.say("%s", text)
	}
}

func (s *turnsScript) acquired(a arguments) {
	r := ports.AcquireReply{
		Now:    s.instant(),
		Head:   s.head(a.options["head"]),
		Paused: a.has("paused"),
		Claims: claimsNamed(a.list("orphans")),
	}
	s.held = true
	s.sayIf(s.turns.acquired(&r, s.sentAt(a), s.now), "the poll asks again")
}

// sentAt returns when a call was sent that an event answers: at present, unless the event names the
// time.
func (s *turnsScript) sentAt(a arguments) (sent time.Time) {
	if !a.has("sent") {
		return s.now
	}
	return scriptStart.Add(s.duration(a.options["sent"]))
}

// ran takes the jobs of a batch whose handler has returned: named, or many of them. With "lost" its
// lease is lost.
func (s *turnsScript) ran(a arguments) {
	names := append(a.list("jobs"), manyNames("j", s.int(a.options["many"]))...)
	b, settled := ranBatch(&s.info.Shard, names, s.now)
	s.turns.outbox.finish(&b.Batch, settled, !a.has("lost"))
}

func (s *turnsScript) unstarted(a arguments) {
	s.say("settles %s", settledNames(s.turns.outbox.settleUnstarted(claimsNamed(a.words), core.Untouched)))
}

func (s *turnsScript) orphans(a arguments) {
	for _, c := range claimsNamed(a.words) {
		c.Begun = true
		s.turns.outbox.settleOrphan(&c, nil, 0)
	}
}

// part ends the first payload of a recovered job, or of many.
func (s *turnsScript) part(a arguments) {
	for _, c := range claimsNamed(append(a.words, manyNames("p", s.int(a.options["many"]))...)) {
		s.turns.outbox.addPart(&awaitedPart{settlement: c.SettlePayload(0)})
	}
}

func (s *turnsScript) due(arguments) { s.turns.due = true }

// turn prepares the next turn and sends it. It counts on the answer for a second.
func (s *turnsScript) turn(a arguments) {
	var begin []core.ClaimRef
	for _, c := range claimsNamed(a.list("begin")) {
		begin = append(begin, c.Ref())
	}
	s.turns.prepare(ports.Lease{Shard: s.info.ID, Owner: "self", Token: 1}, begin, s.int(a.options["want"]), s.now)
	s.turns.takeSlot()
	s.send()
}

func (s *turnsScript) again(arguments) { s.send() }

func (s *turnsScript) send() {
	s.turns.sent(s.now, time.Second)

	r := &s.turns.request
	var has []string
	for _, text := range []struct{ name, of string }{
		{"settles", settledNames(r.Settlements)},
		{"ends a payload of", partNames(r.Parts)},
		{"begins", refNames(r.Begin)},
	} {
		if text.of != "" {
			has = append(has, text.name+" "+text.of)
		}
	}
	if r.Want > 0 {
		has = append(has, fmt.Sprintf("claims %d", r.Want))
	}
	if r.Resent {
		has = append(has, "was sent before")
	}
	if s.turns.byWakeup {
		has = append(has, "follows a wake-up")
	}
	if len(has) == 0 {
		has = append(has, "renews the lease")
	}
	s.say("turn %d %s", r.Number, strings.Join(has, ", "))
}

func partNames(parts []core.PayloadSettlement) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.ID
	}
	return joinNames(names)
}

// answer answers the turn in flight.
func (s *turnsScript) answer(a arguments) {
	s.turns.returnSlot()
	request, sent := s.turns.request, s.turns.sentAt
	r := ports.TurnReply{
		Last:         request.Number,
		Repeat:       a.has("repeat"),
		Now:          s.instant(),
		Claims:       claimsNamed(a.list("claims")),
		Skipped:      s.positions(a.list("skipped")),
		Deferred:     s.positions(a.list("deferred")),
		SkippedParts: s.positions(a.list("skipped-parts")),
		Head:         s.head(a.options["head"]),
		Paused:       a.has("paused"),
	}
	if size := s.int(a.options["kib"]); size > 0 {
		r.Claims[0].Payloads[0].Data = make([]byte, size<<10)
	}

	s.sayIf(s.turns.answered(&request, &r, sent, s.now), "the poll asks again")

	answer, overdue := s.turns.outbox.answered(request.Settlements, &r, scriptTTL, s.now)
	s.sayEnded(answer.Ended)
	for _, d := range overdue {
		s.say("%s has been deferred for %v", d.id, d.lasts)
	}
	s.sayParts(s.turns.outbox.answeredParts(&request, &r))
	if others := s.turns.outbox.buryRecovered(r.Claims, r.Now); len(others) > 0 {
		s.say("may start %s", claimNames(others))
	}
	s.sayIf(s.turns.news.turned(&request, &r), "a wake-up came during the turn")
}

func (s *turnsScript) sayEnded(ended []ports.EndedJob) {
	if len(ended) > 10 {
		s.say("%d jobs have ended: %s, ...", len(ended), ended[0].End)
		return
	}
	for _, end := range ended {
		s.say("%s has ended: %s", end.ID, end.End)
	}
}

func (s *turnsScript) sayParts(parts []answeredPart) {
	if len(parts) > 10 {
		s.say("the payloads of %d jobs have ended", len(parts))
		return
	}
	for _, p := range parts {
		s.say("the payload of %s has ended: %v", p.settlement.ID, p.ok)
	}
}

// fails ends a call with an error.
func (s *turnsScript) fails(a arguments) {
	s.turns.returnSlot()
	s.turns.adaptClaims(&s.turns.request, nil, s.now.Sub(s.turns.sentAt))
	s.turns.failed(a.has("called-off"))
	s.distrust(a)
}

func (s *turnsScript) overdue(a arguments) {
	free, hangs := s.turns.overdue(s.now)
	s.sayIf(free, "gives its slot back")
	if hangs {
		s.say("begins to hang")
		s.distrust(a)
	}
}

func (s *turnsScript) distrust(arguments) { s.givenUp(s.turns.distrust()) }

func (s *turnsScript) givenUp(parts []*awaitedPart) {
	for _, p := range parts {
		s.say("the handler of %s no longer waits", p.settlement.ID)
	}
}

func (s *turnsScript) tick(a arguments) {
	s.sayIf(s.turns.tick(s.now, a.has("running")), "something is to be sent")
}

func (s *turnsScript) wakeup(a arguments) {
	s.turns.wakeUp(a.has("busy"), s.now)
	if s.held {
		s.turns.news.assumeDue(s.instant())
	}
}

// clock is a reply that shows how far the server's clock is ahead.
func (s *turnsScript) clock(a arguments) {
	s.turns.news.syncClock(s.instant().Add(s.duration(a.options["ahead"])), s.instant())
}

func (s *turnsScript) listens(arguments) { s.turns.news.listens(s.now) }

// polled takes a head. The server's clock may be ahead of the estimate.
func (s *turnsScript) polled(a arguments) {
	asOf := s.instant()
	if a.has("ahead") {
		asOf = asOf.Add(s.duration(a.options["ahead"]))
	}
	changed, again := s.turns.news.polled(s.head(a.options["head"]), asOf, s.instant(), s.sentAt(a), s.now)
	s.sayIf(again, "the poll asks again")
	s.sayIf(!changed, "nothing is new")
}

func (s *turnsScript) renewed(a arguments) {
	s.turns.renewed(a.has("paused"), s.int(a.options["unstarted"]))
}

// check asks whether the turn is to be called off, or the lease to be given up.
func (s *turnsScript) check(a arguments) {
	s.sayIf(s.turns.hangs(s.now), "the turn is to be called off")
	if err := s.turns.givenUp(s.now, a.has("leaving")); err != nil {
		s.say("%v", err)
	}
	s.sayIf(s.turns.quiet(s.now, scriptPoll), "the poll is to ask")
}

func (s *turnsScript) lost(arguments) {
	s.held = false
	lost, parts := s.turns.reset()
	s.sayEnded(lost)
	s.givenUp(parts)
}

// mayClaim says whether a turn may claim while jobs wait to start.
func (s *turnsScript) mayClaim(a arguments) {
	s.say("may claim: %v", s.turns.mayClaim(s.int(a.options["unstarted"])))
}
