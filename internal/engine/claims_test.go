package engine

import (
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// TestClaims replays transcripts of the claimed jobs of a shard: events are claims, lanes that take
// batches, turns that begin jobs, cancellations and the passing of time.
func TestClaims(t *testing.T) {
	replayAll(t, "claims", func(w *script) {
		s := &claimsScript{
			script:   w,
			info:     scriptShard(1),
			free:     true,
			lanes:    map[string]*lane{},
			starting: map[string]*startingBatch{},
			running:  map[string]*runningBatch{},
		}
		s.claims = claims{queue: s.info.queue, patience: scriptPoll}
		w.show = s.showState
		w.events = map[string]func(arguments){
			"batch": s.batch, "parallel": s.parallel, "claimed": s.claimed, "next": s.next, "turn": s.turn,
			"answer": s.answer, "woken": s.woken, "ended": s.ended, "part": s.part, "overdue": s.overdue,
			"putback": s.putBack, "cancel": s.cancel, "distrust": s.distrust, "trust": s.trust, "lost": s.lost,
			"orphans": s.orphans,
		}
	})
}

// claimsScript is a shard with lanes that a transcript names, as the batches that they wait for or run.
type claimsScript struct {
	*script
	info       *shardInfo
	claims     claims
	unreliable bool // the store is not trusted
	free       bool // no job has the last chance
	number     int64
	request    ports.TurnRequest
	lanes      map[string]*lane
	starting   map[string]*startingBatch
	running    map[string]*runningBatch
}

func (s *claimsScript) showState() {
	s.changed("unstarted", "%d", s.claims.unstarted())
	if batches, first := s.claims.waiting(!s.unreliable); first == nil {
		s.changed("batches that may start", "none")
	} else {
		s.changed("batches that may start", "%d, first %s", batches, claimNames([]core.Claim{*first}))
	}
	s.changed("running", "%d", len(s.claims.running))
	if s.info.queue.Parallel > 0 {
		s.changed("free to run", "%d", s.claims.freeToRun())
	}
}

func (s *claimsScript) batch(a arguments) { s.info.queue.BatchSize = s.int(a.words[0]) }

func (s *claimsScript) parallel(a arguments) { s.info.queue.Parallel = s.int(a.words[0]) }

// claimed takes claims: named, or many recovered ones.
func (s *claimsScript) claimed(a arguments) {
	for _, name := range manyNames("j", s.int(a.options["many"])) {
		a.words = append(a.words, name+"*")
	}
	s.claims.push(claimsNamed(a.words), s.now)
}

// next takes a batch for a lane.
func (s *claimsScript) next(a arguments) {
	name := a.words[0]
	l := s.lanes[name]
	if l == nil {
		l = &lane{}
		s.lanes[name] = l
	}

	if id, needed := s.claims.lastChance(!s.unreliable); needed {
		if !s.free {
			s.say("%s waits for the last chance", id)
			return
		}
		s.free = false
		s.say("%s gets the last chance", id)
	}

	switch claims, chance, begins := s.claims.next(l, !s.unreliable, s.now); {
	case begins != nil:
		s.starting[name] = begins
		s.say("lane %s waits for a turn to begin %s", name, claimNames(begins.claims))
	case len(claims) == 0:
		s.say("nothing may start")
	default:
		s.run(name, claims, chance)
	}
}

func (s *claimsScript) run(lane string, claims []core.Claim, chance bool) {
	s.running[lane] = s.claims.start(&s.info.Shard, 1, claims, chance, s.now)
	s.say("lane %s runs %s", lane, claimNames(claims))
}

// turn makes a turn.
func (s *claimsScript) turn(arguments) {
	if !s.claims.needsBegin() {
		s.say("begins nothing")
	}
	s.number++
	s.request = ports.TurnRequest{Number: s.number, Begin: s.claims.beginRefs(s.number)}
	if len(s.request.Begin) > 0 {
		s.say("begins %s", refNames(s.request.Begin))
	}
}

// answer answers the last turn.
func (s *claimsScript) answer(a arguments) {
	r := ports.TurnReply{NotBegun: s.positions(a.list("not-begun")), Repeat: a.has("repeat")}
	s.withdraw(s.claims.confirmBegin(&s.request, &r))
}

// woken is a lane that looks whether the batch that it waits for has begun.
func (s *claimsScript) woken(a arguments) {
	name := a.words[0]
	switch ok, wait := s.claims.takeBegun(s.starting[name]); {
	case wait:
		s.say("lane %s has to wait", name)
	case !ok:
		s.say("lane %s no longer waits", name)
	default:
		s.run(name, s.starting[name].claims, s.starting[name].chance)
	}
}

// ended ends the batch of a lane.
func (s *claimsScript) ended(a arguments) { s.chanceBack(s.claims.finish(s.running[a.words[0]])) }

func (s *claimsScript) chanceBack(had bool) {
	if had {
		s.free = true
		s.say("the last chance is free")
	}
}

// part ends a payload of the job that a lane runs: the first, unless its position is given.
func (s *claimsScript) part(a arguments) {
	b := s.running[a.words[0]]
	part := b.Claims[0].SettlePayload(s.int(a.options["position"]))
	s.chanceBack(s.claims.partEnded(b, &part))
}

func (s *claimsScript) overdue(arguments) {
	overdue, waiting := s.claims.overdue(s.now)
	s.say("overdue: %v, waiting: %v", overdue, waiting)
}

func (s *claimsScript) putBack(a arguments) { s.withdraw(s.claims.putBack(s.now, a.has("all"))) }

// cancel cancels a job that was claimed by a turn, the first if it is not named.
func (s *claimsScript) cancel(a arguments) {
	c := claimNamed(a.words[0])
	if a.has("turn") {
		c.Receipt.Number = int64(s.int(a.options["turn"]))
	}
	w, running, position := s.claims.cancel(&ports.Cancellation{ID: c.ID, Receipt: c.Receipt})
	s.withdraw(w)
	if running != nil {
		s.say("job %d of %s is cancelled", position, claimNames(running.Claims))
	}
}

func (s *claimsScript) distrust(arguments) {
	s.unreliable = true
	s.withdraw(s.claims.leaveStarting())
}

func (s *claimsScript) trust(arguments) { s.unreliable = false }

func (s *claimsScript) lost(arguments) { s.withdraw(s.claims.loseLease()) }

// orphans are jobs that the store says have begun.
func (s *claimsScript) orphans(a arguments) {
	for _, c := range claimsNamed(a.words) {
		c.Begun = true
		s.claims.correctBegun(&c)
		s.say("%s has begun: %v", c.ID, c.Begun)
	}
}

func (s *claimsScript) withdraw(w withdrawal) {
	if len(w.claims) > 0 {
		s.say("settles %s", claimNames(w.claims))
	}
	s.chanceBack(w.chance)
	if len(w.lanes) > 0 {
		s.say("wakes lane %s", strings.Join(s.laneNames(w.lanes), " "))
	}
}

func (s *claimsScript) laneNames(lanes []*lane) (names []string) {
	for _, l := range lanes {
		for name, known := range s.lanes {
			if known == l {
				names = append(names, name)
			}
		}
	}
	return names
}
