package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// volume is jobs, job 0 and on, of payloads of a size. Their ids are in order.
type volume struct{ jobs, payloads, size int }

// overPayloads is a volume of more payloads than any call may carry or move at once.
func overPayloads() volume { return volume{jobs: 8, payloads: 250, size: 4} }

// overBytes is one of more bytes.
func overBytes() volume { return volume{jobs: 5, payloads: 4, size: 512 << 10} }

func (v volume) String() string {
	return fmt.Sprintf("%d jobs of %d payloads of %d bytes", v.jobs, v.payloads, v.size)
}

// ids returns the ids of the volume's jobs.
func (v volume) ids() []string {
	list := make([]string, v.jobs)
	for i := range list {
		list[i] = fmt.Sprintf("%d-%d", v.payloads, i)
	}
	return list
}

// list returns the payloads of each of its jobs.
func (v volume) list() []core.Payload {
	list := make([]core.Payload, v.payloads)
	for i := range list {
		text := fmt.Sprintf("%04d", i)
		list[i] = pay(text+strings.Repeat("x", v.size-len(text)), float64(i))
	}
	return list
}

// pushVolume pushes the jobs of a volume, due now.
func (e *env) pushVolume(v volume) {
	e.tb.Helper()
	for _, id := range v.ids() {
		e.pushList(id, v.list())
	}
}

// pushList pushes payloads for an id, at most a MiB and 1,000 of them at a time.
func (e *env) pushList(id string, payloads []core.Payload) {
	e.tb.Helper()
	var entries []core.Entry
	size := 0
	for i, p := range payloads {
		entries = append(entries, core.Entry{ID: id, Payload: p, When: core.At(start)})
		size += len(p.Data)
		if size >= 1<<20 || len(entries) == 1000 || i == len(payloads)-1 {
			e.push(entries...)
			entries, size = nil, 0
		}
	}
}

// brief names payloads by how they begin, their size and score: comparing all their bytes would
// take longer than the case.
func brief(payloads []core.Payload) []string {
	list := make([]string, len(payloads))
	for i, p := range payloads {
		list[i] = fmt.Sprintf("%.16s of %d bytes at %g", p.Data, len(p.Data), p.Score)
	}
	return list
}

// briefly names claims and their payloads.
func briefly(claims []core.Claim) []string {
	list := make([]string, len(claims))
	for i, c := range claims {
		list[i] = fmt.Sprintf("%s %v %+v: %v", c.ID, c.Receipt, c.State, brief(c.Payloads))
	}
	return list
}

// sizeOf returns how many payloads there are, and how many bytes.
func sizeOf(payloads []core.Payload) (n, bytes int) {
	for i := range payloads {
		bytes += len(payloads[i].Data)
	}
	return len(payloads), bytes
}

// inBounds reports payloads beyond the bounds that a call carried or moved. A single payload may
// be larger.
func (e *env) inBounds(what string, parts ...[]core.Payload) {
	e.tb.Helper()
	n, bytes, entries := 0, 0, 0
	for _, payloads := range parts {
		some, size := sizeOf(payloads)
		n, bytes = n+some, bytes+size
		if some > 0 {
			entries++
		}
	}
	if entries > 1 && (n > core.MaxTurnPayloads || bytes > core.MaxStepBytes) {
		e.errorf("%s: %d payloads of %d bytes, want %d and %d at most", what, n, bytes, core.MaxTurnPayloads, core.MaxStepBytes)
	}
}

// payloadsOf returns the payloads of claims, claim by claim.
func payloadsOf(claims ...core.Claim) [][]core.Payload {
	lists := make([][]core.Payload, len(claims))
	for i := range claims {
		lists[i] = claims[i].Payloads
	}
	return lists
}

// claimAll claims all that is due, with as many turns as that takes.
func (h *holder) claimAll() (all []core.Claim) {
	h.e.tb.Helper()
	for {
		r := h.request(core.MaxTurnJobs)
		r.Bytes = 1 << 30
		reply := h.send(r)
		h.e.inBounds("what a turn carries", append(payloadsOf(reply.Claims...), payloadsOf(reply.Orphans...)...)...)
		if len(reply.Claims) == 0 {
			return all
		}
		all = append(all, reply.Claims...)
	}
}

// served claims a job, with as many turns as the store needs to take in the pushes.
func (h *holder) served() core.Claim {
	h.e.tb.Helper()
	for range maxSteps {
		if claims := h.claim(1); len(claims) > 0 {
			return claims[0]
		}
	}
	h.e.tb.Fatalf("%d turns claimed nothing\nthe rule: %s", maxSteps, h.e.rule)
	return core.Claim{}
}

// settleInParts sends settlements, and again those that are deferred, until none is. It returns
// how many turns that took.
func (h *holder) settleInParts(claims []core.Claim, how func(core.Claim) core.Settlement) (turns int) {
	h.e.tb.Helper()
	for left := settleAll(claims, how); len(left) > 0; turns++ {
		if turns > len(claims) {
			h.e.errorf("%d jobs are still not settled after %d turns", len(left), turns)
			return turns
		}
		reply := h.settle(left...)
		if reply.Repeat {
			continue // it does not report deferrals; settled jobs are skipped
		}
		var later []core.Settlement
		var moved [][]core.Payload
		for i, x := range left {
			if slices.Contains(reply.Deferred, i) {
				later = append(later, x)
				continue
			}
			at := slices.IndexFunc(claims, func(c core.Claim) bool { return c.ID == x.ID })
			if !x.Plain() && !slices.Contains(reply.Skipped, i) {
				moved = append(moved, claims[at].Payloads)
			}
		}
		h.e.inBounds("what a turn settles", moved...)
		left = later
	}
	return turns
}

// repeatedSince reports whether calls were repeated since a value of Repeats.Lossy: then a step
// has perhaps moved two parts.
func (e *env) repeatedSince(lossy int64) bool { return e.repeats.Lossy.Load() > lossy }

// stepIDs repeats a step with the ids that it has not reached. Before each call but the first, and
// after the last, check is called with how many ids have been reached, and whether that was one
// call.
func (e *env) stepIDs(ids []string, do func(ids []string) (ports.StepReply, error), check func(reached int, once bool)) (handled, steps int) {
	e.tb.Helper()
	for left := ids; len(left) > 0; steps++ {
		if steps > maxSteps {
			e.errorf("%d ids are still not reached after %d steps", len(left), steps)
			return handled, steps
		}
		since := e.repeats.Lossy.Load()
		reply, err := do(left)
		e.must(err, "a step in parts")
		if reply.Reached < 0 || reply.Reached > len(left) || reply.Handled > reply.Reached {
			e.errorf("a step with %d ids reached %d and handled %d", len(left), reply.Reached, reply.Handled)
			return handled, steps
		}
		handled += reply.Handled
		left = left[reply.Reached:]
		check(len(ids)-len(left), !e.repeatedSince(since))
	}
	return handled, steps
}

// maxSteps is more than any case needs.
const maxSteps = 50
