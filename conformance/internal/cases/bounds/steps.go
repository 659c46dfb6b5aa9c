package bounds

import (
	"fmt"
	"slices"

	"github.com/skeinq/skein/conformance/internal/env"
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

func partSteps(e *env.Env) []partStep {
	jobs := func(name string, moves bool, do env.JobStep) partStep {
		return partStep{name: name, moves: moves,
			do: func(ids []string) (ports.StepReply, error) {
				return do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: ids})
			},
		}
	}

	dead := func(name string, moves bool, do env.DeadLetterStep) partStep {
		return partStep{
			name:  name,
			moves: moves,
			dead:  true,
			do: func(ids []string) (ports.StepReply, error) {
				return do(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, DeadLetters: wholes(ids)})
			},
			all: func() (ports.StepReply, error) {
				return do(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Before: core.MaxInstant})
			},
		}
	}

	return []partStep{
		jobs("Bury", true, e.Store.Bury), jobs("Delete", false, e.Store.Delete),
		dead("Revive", true, e.Store.Revive), dead("Purge", false, e.Store.Purge),
	}
}

// wholes refers to whole dead letters.
func wholes(ids []string) []ports.DeadLetterRef {
	refs := make([]ports.DeadLetterRef, len(ids))
	for i, id := range ids {
		refs[i] = env.Whole(id)
	}
	return refs
}

// there returns the payloads of an id in the place from which the step takes them, and beyond those
// in the place to which it moves them.
func (s partStep) there(e *env.Env, id string) (existing, beyond []core.Payload) {
	found := e.Find(id)
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
func (s partStep) left(e *env.Env, id string) int {
	found := e.FindSome(ports.FindRequest{Queue: env.Orders, ID: id, Payloads: 1})
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
func (s partStep) prepare(e *env.Env, ids []string, payloads []core.Payload) {
	e.TB.Helper()

	push := func() {
		for _, id := range ids {
			e.PushList(id, payloads)
		}
	}

	meet := func() {
		for _, id := range ids {
			e.Push(core.Entry{ID: id, Payload: env.Pay(met, -1)})
		}
	}

	bury := func() { e.StepIDs(ids, partSteps(e)[0].do, func(int, bool) {}) }

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
func (s partStep) clear(e *env.Env, ids []string) {
	for _, step := range partSteps(e) {
		if !step.moves {
			e.StepIDs(ids, step.do, func(int, bool) {})
		}
	}
}

// boundReaches follows steps over jobs that are too large for one step. The reached jobs are
// handled. Of the next job a part may be handled, and the others wait.
func boundReaches(e *env.Env, v env.Volume) {
	for _, s := range partSteps(e) {
		s.prepare(e, v.IDs(), v.List())

		moved := make([]int, v.Jobs)
		handled, steps := e.StepIDs(v.IDs(), s.do, func(reached int, once bool) {
			var part [][]core.Payload
			for i, id := range v.IDs() {
				left := s.left(e, id)
				gone := v.Payloads - left
				switch {
				case i < reached && left > 0:
					e.Errorf("%s reached %d ids, and %q has %d payloads", s.name, reached, id, left)
				case i > reached && gone > 0:
					e.Errorf("%s reached %d ids, and %q has lost %d payloads", s.name, reached, id, gone)
				}
				part = append(part, v.List()[moved[i]:gone])
				moved[i] = gone
			}

			if once && s.moves {
				e.InBounds("what a step moves: "+s.name, part...)
			}
		})

		e.Reported("how many "+s.name+" handled", handled, v.Jobs)
		if s.moves {
			e.Reported(s.name+" took several steps for "+v.String(), steps > 1, true)
		}

		s.clear(e, v.IDs())
	}
}

// boundJobParts and boundDeadParts handle a large entry between two small ones in parts. Once the
// first job is handled, boundJobParts pushes a payload for its id.
func boundJobParts(e *env.Env) {
	for _, s := range partSteps(e)[:2] {
		inParts(e, s)
	}
}

func boundDeadParts(e *env.Env) {
	for _, s := range partSteps(e)[2:] {
		inParts(e, s)
	}
}

// partVolume is the size of an entry that is too large for two steps.
func partVolume() env.Volume { return env.Volume{Jobs: 1, Payloads: 2500, Size: 4} }

func inParts(e *env.Env, s partStep) {
	ids, all := []string{"a", "b", "c"}, partVolume().List()
	s.prepare(e, []string{"b"}, all)
	s.prepare(e, []string{"a", "c"}, all[:1])

	left := len(all)
	pushed := false
	handled, steps := e.StepIDs(ids, s.do, func(reached int, once bool) {
		existing, beyond := s.there(e, "b")
		e.Same("what is left of the large one after a step of "+s.name,
			env.Brief(existing), env.Brief(all[len(all)-len(existing):]))

		if s.moves {
			e.Same("what "+s.name+" has moved of it", len(beyond), 1+len(all)-len(existing))
			if moved := left - len(existing); once && moved > core.MaxTurnPayloads {
				e.Errorf("a step of %s moved %d payloads, want %d at most", s.name, moved, core.MaxTurnPayloads)
			}
		}

		left = len(existing)
		if reached > 0 && !pushed && !s.dead {
			pushed = true
			e.Push(env.Entry("a", "pushed meanwhile", 9))
		}
	})

	e.Reported("how many "+s.name+" handled", handled, len(ids))
	if s.moves {
		e.Reported(fmt.Sprintf("%s took 3 or more steps for %d payloads of one id", s.name, len(all)), steps > 2, true)
	}

	if pushed {
		existing, _ := s.there(e, "a")
		e.Same("what was pushed meanwhile", existing, []core.Payload{env.Pay("pushed meanwhile", 9)})
	}

	s.clear(e, ids)
}

func boundMore(e *env.Env) {
	all := partVolume().List()
	for _, s := range partSteps(e) {
		if s.all == nil {
			continue
		}

		ids := []string{"x", "y"}
		s.prepare(e, ids, all)
		handled, more := 0, true
		for steps := 0; more; steps++ {
			if steps > env.MaxSteps {
				e.Errorf("%s reports that more is left after %d steps", s.name, steps)
				break
			}

			since := e.Repeats.Lossy.Load()
			before := s.left(e, "x") + s.left(e, "y")
			reply, err := s.all()
			e.Must(err, s.name)
			after := s.left(e, "x") + s.left(e, "y")

			if moved := before - after; s.moves && !e.RepeatedSince(since) && moved > core.MaxTurnPayloads {
				e.Errorf("a step of %s moved %d payloads, want %d at most", s.name, moved, core.MaxTurnPayloads)
			}

			e.Same(fmt.Sprintf("whether more is left, with %d payloads, of %s", after, s.name), reply.More, after > 0)
			e.Same("Reached of a step without ids", reply.Reached, 0)
			handled, more = handled+reply.Handled, reply.More
		}

		e.Reported("how many "+s.name+" handled", handled, len(ids))
		s.clear(e, ids)
	}
}

// boundHot works one id that has many payloads. It claims the lowest ones and puts them back. Then
// it claims all payloads in order, one claim after another.
func boundHot(e *env.Env) {
	all := env.Volume{Jobs: 1, Payloads: 10_000, Size: 8}.List()
	e.PushList("hot", all)

	h := e.Acquire("n1")
	c := h.Served()
	e.Same("the claimed payloads", env.Brief(c.Payloads), env.Brief(all[:core.MaxTurnPayloads]))
	e.Same("the deferred", h.Settle(env.Untouched(c)).Deferred, nil)
	e.Same("the payloads once it is put back", len(e.Queued("hot").Payloads), len(all))

	for i := 0; i < len(all); i += core.MaxTurnPayloads {
		c = h.Served()
		e.Same("the claimed payloads", env.Brief(c.Payloads), env.Brief(all[i:i+core.MaxTurnPayloads]))
		h.Settle(env.Done(c))
	}
	e.Same("what is left", slices.Clone(e.QueuedIDs()), nil)
}
