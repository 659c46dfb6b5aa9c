package conformance

import (
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// partStep is Bury, Delete, Revive or Purge, by ids.
type partStep struct {
	name string
	// dead is true if the step takes dead payloads. moves is true if it moves payloads between the
	// queue and the morgue.
	dead, moves bool
	do          func(ids []string) (ports.StepReply, error)
	// all makes the step over all dead letters. It is nil for a step on jobs.
	all func() (ports.StepReply, error)
}

func (e *env) partSteps() []partStep {
	jobs := func(name string, moves bool, do jobStep) partStep {
		return partStep{name: name, moves: moves,
			do: func(ids []string) (ports.StepReply, error) { return do(e.ctx, ports.JobStep{Shard: e.shard, IDs: ids}) },
		}
	}
	dead := func(name string, moves bool, do deadLetterStep) partStep {
		return partStep{name: name, moves: moves, dead: true,
			do: func(ids []string) (ports.StepReply, error) {
				return do(e.ctx, ports.DeadLetterStep{Shard: e.shard, DeadLetters: wholes(ids)})
			},
			all: func() (ports.StepReply, error) {
				return do(e.ctx, ports.DeadLetterStep{Shard: e.shard, Before: core.MaxInstant})
			},
		}
	}
	return []partStep{
		jobs("Bury", true, e.store.Bury), jobs("Delete", false, e.store.Delete),
		dead("Revive", true, e.store.Revive), dead("Purge", false, e.store.Purge),
	}
}

// wholes refers to whole dead letters.
func wholes(ids []string) []ports.DeadLetterRef {
	refs := make([]ports.DeadLetterRef, len(ids))
	for i, id := range ids {
		refs[i] = whole(id)
	}
	return refs
}

// there returns the payloads of an id in the place from which the step takes them, and beyond those
// in the place to which it moves them.
func (s partStep) there(e *env, id string) (there, beyond []core.Payload) {
	found := e.find(id)
	var queued, dead []core.Payload
	if found.Queued != nil {
		queued = found.Queued.Payloads
	}
	if found.DeadLetter != nil {
		dead = found.DeadLetter.Payloads
	}
	if s.dead {
		return dead, queued
	}
	return queued, dead
}

// left returns the number of payloads of an id that the step has not taken yet.
func (s partStep) left(e *env, id string) int {
	found := e.findSome(ports.FindRequest{Queue: orders, ID: id, Payloads: 1})
	switch {
	case s.dead && found.DeadLetter != nil:
		return found.DeadLetter.Count
	case !s.dead && found.Queued != nil:
		return found.Queued.Count
	}
	return 0
}

// prepare pushes payloads of ids, and buries them if the step takes dead ones. If the step moves
// them, each id has a payload on the other side already, so that no store can move them whole.
func (s partStep) prepare(e *env, ids []string, payloads []core.Payload) {
	e.tb.Helper()
	push := func() {
		for _, id := range ids {
			e.pushList(id, payloads)
		}
	}
	meet := func() {
		for _, id := range ids {
			e.push(core.Entry{ID: id, Payload: pay(met, -1)})
		}
	}
	bury := func() { e.stepIDs(ids, e.partSteps()[0].do, func(int, bool) {}) }
	switch {
	case s.dead:
		push()
		bury()
		if s.moves {
			meet()
		}
	default:
		if s.moves {
			meet()
			bury()
		}
		push()
	}
}

// met is the payload that is already in the place to which a step moves others.
const met = "was there"

// clear deletes the jobs and dead letters of ids.
func (s partStep) clear(e *env, ids []string) {
	for _, step := range e.partSteps() {
		if !step.moves {
			e.stepIDs(ids, step.do, func(int, bool) {})
		}
	}
}

// boundReaches follows steps over jobs that are too large for one step. The reached jobs are
// handled. Of the next job a part may be handled, and the others wait.
func boundReaches(e *env, v volume) {
	for _, s := range e.partSteps() {
		s.prepare(e, v.ids(), v.list())
		moved := make([]int, v.jobs)
		handled, steps := e.stepIDs(v.ids(), s.do, func(reached int, once bool) {
			var part [][]core.Payload
			for i, id := range v.ids() {
				left := s.left(e, id)
				gone := v.payloads - left
				switch {
				case i < reached && left > 0:
					e.errorf("%s reached %d ids, and %q has %d payloads", s.name, reached, id, left)
				case i > reached && gone > 0:
					e.errorf("%s reached %d ids, and %q has lost %d payloads", s.name, reached, id, gone)
				}
				part = append(part, v.list()[moved[i]:gone])
				moved[i] = gone
			}
			if once && s.moves {
				e.inBounds("what a step moves: "+s.name, part...)
			}
		})
		e.reported("how many "+s.name+" handled", handled, v.jobs)
		if s.moves {
			e.reported(s.name+" took several steps for "+v.String(), steps > 1, true)
		}
		s.clear(e, v.ids())
	}
}

// boundJobParts and boundDeadParts handle a large entry between two small ones in parts. Once the
// first job is handled, boundJobParts pushes a payload for its id.
func boundJobParts(e *env) {
	for _, s := range e.partSteps()[:2] {
		inParts(e, s)
	}
}

func boundDeadParts(e *env) {
	for _, s := range e.partSteps()[2:] {
		inParts(e, s)
	}
}

// partVolume is the size of an entry that is too large for two steps.
func partVolume() volume { return volume{jobs: 1, payloads: 2500, size: 4} }

func inParts(e *env, s partStep) {
	ids, all := []string{"a", "b", "c"}, partVolume().list()
	s.prepare(e, []string{"b"}, all)
	s.prepare(e, []string{"a", "c"}, all[:1])
	left := len(all)
	pushed := false
	handled, steps := e.stepIDs(ids, s.do, func(reached int, once bool) {
		there, beyond := s.there(e, "b")
		e.same("what is left of the large one after a step of "+s.name, brief(there), brief(all[len(all)-len(there):]))
		if s.moves {
			e.same("what "+s.name+" has moved of it", len(beyond), 1+len(all)-len(there))
			if moved := left - len(there); once && moved > core.MaxTurnPayloads {
				e.errorf("a step of %s moved %d payloads, want %d at most", s.name, moved, core.MaxTurnPayloads)
			}
		}
		left = len(there)
		if reached > 0 && !pushed && !s.dead {
			pushed = true
			e.push(entry("a", "pushed meanwhile", 9))
		}
	})
	e.reported("how many "+s.name+" handled", handled, len(ids))
	if s.moves {
		e.reported(fmt.Sprintf("%s took 3 or more steps for %d payloads of one id", s.name, len(all)), steps > 2, true)
	}
	if pushed {
		there, _ := s.there(e, "a")
		e.same("what was pushed meanwhile", there, []core.Payload{pay("pushed meanwhile", 9)})
	}
	s.clear(e, ids)
}

func boundMore(e *env) {
	all := partVolume().list()
	for _, s := range e.partSteps() {
		if s.all == nil {
			continue
		}
		ids := []string{"x", "y"}
		s.prepare(e, ids, all)
		handled, more := 0, true
		for steps := 0; more; steps++ {
			if steps > maxSteps {
				e.errorf("%s reports that more is left after %d steps", s.name, steps)
				break
			}
			since := e.repeats.Lossy.Load()
			before := s.left(e, "x") + s.left(e, "y")
			reply, err := s.all()
			e.must(err, s.name)
			after := s.left(e, "x") + s.left(e, "y")
			if moved := before - after; s.moves && !e.repeatedSince(since) && moved > core.MaxTurnPayloads {
				e.errorf("a step of %s moved %d payloads, want %d at most", s.name, moved, core.MaxTurnPayloads)
			}
			e.same(fmt.Sprintf("whether more is left, with %d payloads, of %s", after, s.name), reply.More, after > 0)
			e.same("Reached of a step without ids", reply.Reached, 0)
			handled, more = handled+reply.Handled, reply.More
		}
		e.reported("how many "+s.name+" handled", handled, len(ids))
		s.clear(e, ids)
	}
}

// boundHot works one id that has many payloads. It claims the lowest ones and puts them back. Then
// it claims all payloads in order, one claim after another.
func boundHot(e *env) {
	all := volume{jobs: 1, payloads: 10_000, size: 8}.list()
	e.pushList("hot", all)
	h := e.acquire("n1")
	c := h.served()
	e.same("the claimed payloads", brief(c.Payloads), brief(all[:core.MaxTurnPayloads]))
	e.same("the deferred", h.settle(untouched(c)).Deferred, nil)
	e.same("the payloads once it is put back", len(e.queued("hot").Payloads), len(all))
	for i := 0; i < len(all); i += core.MaxTurnPayloads {
		c = h.served()
		e.same("the claimed payloads", brief(c.Payloads), brief(all[i:i+core.MaxTurnPayloads]))
		h.settle(done(c))
	}
	e.same("what is left", slices.Clone(e.queuedIDs()), nil)
}
