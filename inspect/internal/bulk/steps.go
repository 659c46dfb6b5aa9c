package bulk

import (
	"fmt"
	"iter"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// partSteps is the number of consecutive steps without a finished entry after which an action gives
// up. Then either the store makes no progress, or an entry has ten million payloads.
const partSteps = 10_000

func errUnfinished(left int) error {
	return fmt.Errorf("%d steps have not finished %d large entries; call the action again", partSteps, left)
}

// Steps repeats a step with the entries that the previous step did not reach.
func Steps[E any](t *Tally, entries []E, step func([]E) (ports.StepReply, error)) error {
	for unfinished := 0; len(entries) > 0; unfinished++ {
		if unfinished == partSteps {
			return errUnfinished(len(entries))
		}

		reply, err := step(entries)
		if err != nil {
			return err
		}

		t.Met += reply.Handled
		t.Pass(reply.Reached, reply.Handled)
		entries = entries[min(reply.Reached, len(entries)):]
		if reply.Reached > 0 {
			unfinished = -1
		}
	}
	return nil
}

// ByShard returns the entries of each shard, by the index of the shard.
func ByShard[E any](entries []E, shards int, id func(*E) string) [][]E {
	groups := make([][]E, max(1, shards))
	for n := range entries {
		at := core.ShardOf(id(&entries[n]), shards)
		groups[at] = append(groups[at], entries[n])
	}
	return groups
}

// Whole returns a function that divides entries into steps of at most ports.MaxStep entries, and of
// at most the payloads and bytes that a step moves. A larger entry has a step for itself. No id
// occurs twice in a step.
func Whole[E any](of func(*E) (id string, payloads []core.Payload)) func([]E) iter.Seq[[]E] {
	return func(entries []E) iter.Seq[[]E] {
		return func(yield func([]E) bool) {
			for len(entries) > 0 {
				n := whole(entries, of)
				if !yield(entries[:n]) {
					return
				}
				entries = entries[n:]
			}
		}
	}
}

// whole returns the number of entries in the first of these steps.
func whole[E any](entries []E, of func(*E) (id string, payloads []core.Payload)) (n int) {
	var bound core.Bound
	there := make(map[string]bool)
	for n < min(len(entries), ports.MaxStep) {
		id, payloads := of(&entries[n])
		if there[id] || !bound.TakeWhole(payloads) {
			break
		}
		there[id] = true
		n++
	}
	return n
}

// maxStepBytes is the approximate maximum of the bytes of payload that a step names.
const maxStepBytes = 1 << 20

// Refs divides references into steps by number and by size.
func Refs(refs []ports.DeadLetterRef) iter.Seq[[]ports.DeadLetterRef] {
	return func(yield func([]ports.DeadLetterRef) bool) {
		start, size := 0, 0
		for at, r := range refs {
			named := 0
			for _, data := range r.Payloads {
				named += len(data)
			}

			if at > start && (at-start == ports.MaxStep || size+named > maxStepBytes) {
				if !yield(refs[start:at]) {
					return
				}
				start, size = at, 0
			}
			size += named
		}
		if start < len(refs) {
			yield(refs[start:])
		}
	}
}
