package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// volume is a number of jobs with the same number of payloads of the same size. Their ids are in
// order.
type volume struct{ jobs, payloads, size int }

// overPayloads is a volume with more payloads than any call may carry or move.
func overPayloads() volume { return volume{jobs: 8, payloads: 250, size: 4} }

// overBytes is a volume with more bytes than any call may carry or move.
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

// list returns the payloads that each job of the volume has.
func (v volume) list() []core.Payload {
	list := make([]core.Payload, v.payloads)
	for i := range list {
		text := fmt.Sprintf("%04d", i)
		list[i] = pay(text+strings.Repeat("x", v.size-len(text)), float64(i))
	}
	return list
}

// pushVolume pushes the jobs of a volume, due since the start.
func (e *env) pushVolume(v volume) {
	e.tb.Helper()
	for _, id := range v.ids() {
		e.pushList(id, v.list())
	}
}

// pushList pushes payloads for an id, due since the start: about a MiB or 1,000 payloads in a push.
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

// brief describes each payload by its first 16 bytes, its size and its score. To compare all bytes
// would take longer than the case.
func brief(payloads []core.Payload) []string {
	list := make([]string, len(payloads))
	for i, p := range payloads {
		list[i] = fmt.Sprintf("%.16s of %d bytes at %g", p.Data, len(p.Data), p.Score)
	}
	return list
}

// briefly describes claims, and their payloads as brief does.
func briefly(claims []core.Claim) []string {
	list := make([]string, len(claims))
	for i, c := range claims {
		list[i] = fmt.Sprintf("%s %v %+v: %v", c.ID, c.Receipt, c.State, brief(c.Payloads))
	}
	return list
}

// sizeOf returns the number of payloads and the number of their bytes.
func sizeOf(payloads []core.Payload) (n, bytes int) {
	for i := range payloads {
		bytes += len(payloads[i].Data)
	}
	return len(payloads), bytes
}

// inBounds reports a failure if a call carried or moved more payloads or bytes than the bounds
// allow. parts are the payloads of each job or dead letter. A single job or dead letter may exceed
// the bounds: the first payload and the first settlement always fit.
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
		e.errorf("%s: %d payloads with %d bytes, want at most %d and %d", what, n, bytes, core.MaxTurnPayloads, core.MaxStepBytes)
	}
}

// inAcquireBounds reports claims beyond the bounds of an acquire.
func (e *env) inAcquireBounds(what string, claims []core.Claim) {
	e.tb.Helper()
	e.inBounds(what, payloadsOf(claims...)...)
	if _, bytes := sizeOf(slices.Concat(payloadsOf(claims...)...)); bytes > core.AcquireBytes {
		e.errorf("%s: %d bytes, want %d at most", what, bytes, core.AcquireBytes)
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

// claimAll makes turns until one claims nothing, and returns all claims.
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

// served makes turns until one claims a job. A store may need several turns to merge many pushes.
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

// settleInParts settles claims. It sends deferred settlements again until no settlement is
// deferred, and returns the number of turns.
func (h *holder) settleInParts(claims []core.Claim, how func(core.Claim) core.Settlement) (turns int) {
	h.e.tb.Helper()
	for left := settleAll(claims, how); len(left) > 0; turns++ {
		if turns > len(claims) {
			h.e.errorf("%d jobs are still not settled after %d turns", len(left), turns)
			return turns
		}
		reply := h.settle(left...)
		if reply.Repeat {
			continue // a repeat reports no deferrals; the next turn skips settled jobs
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

// repeatedSince reports whether calls were repeated since Repeats.Lossy had the given value. Then
// one step may have moved two parts.
func (e *env) repeatedSince(lossy int64) bool { return e.repeats.Lossy.Load() > lossy }

// stepIDs repeats a step with the ids that it has not reached, until it has reached all. After each
// step it calls check with the number of ids reached until then. once is true if that step was not
// repeated.
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

// maxSteps is a number of steps or turns that no case needs on a correct store.
const maxSteps = 50
