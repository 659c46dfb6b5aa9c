package env

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Volume is a number of jobs with the same number of payloads of the same size. Their ids are in
// order.
type Volume struct{ Jobs, Payloads, Size int }

// String describes the volume.
func (v Volume) String() string {
	return fmt.Sprintf("%d jobs of %d payloads of %d bytes", v.Jobs, v.Payloads, v.Size)
}

// IDs returns the ids of the volume's jobs.
func (v Volume) IDs() []string {
	list := make([]string, v.Jobs)
	for i := range list {
		list[i] = fmt.Sprintf("%d-%d", v.Payloads, i)
	}
	return list
}

// List returns the payloads that each job of the volume has.
func (v Volume) List() []core.Payload {
	list := make([]core.Payload, v.Payloads)
	for i := range list {
		text := fmt.Sprintf("%04d", i)
		list[i] = Pay(text+strings.Repeat("x", v.Size-len(text)), float64(i))
	}
	return list
}

// PushVolume pushes the jobs of a volume, due since the start.
func (e *Env) PushVolume(v Volume) {
	e.TB.Helper()
	for _, id := range v.IDs() {
		e.PushList(id, v.List())
	}
}

// PushList pushes payloads for an id, due since the start: about a MiB or 1,000 payloads in a push.
func (e *Env) PushList(id string, payloads []core.Payload) {
	e.TB.Helper()
	var entries []core.Entry
	size := 0
	for i, p := range payloads {
		entries = append(entries, core.Entry{ID: id, Payload: p, When: core.At(Start)})
		size += len(p.Data)
		if size >= 1<<20 || len(entries) == 1000 || i == len(payloads)-1 {
			e.Push(entries...)
			entries, size = nil, 0
		}
	}
}

// LeaveVolume lets the server n1 claim a volume and crash. It returns the claims in order of id, as
// they are handed over. Its turns may have claimed them in another order, if the first one met only
// some of the jobs, as on a store that merges an inbox in parts.
func (e *Env) LeaveVolume(v Volume) []core.Claim {
	e.TB.Helper()
	e.PushVolume(v)
	h := e.Acquire("n1")
	left := h.ClaimAll()
	slices.SortFunc(left, func(a, b core.Claim) int { return cmp.Compare(a.ID, b.ID) })
	e.Clock.Advance(2 * TTL)
	return left
}

// HandedOver makes turns until the given number of jobs have been handed over.
func (h *Holder) HandedOver(left int) {
	h.Env.TB.Helper()
	for range left + 1 {
		if len(h.Inherited) >= left {
			return
		}

		r := h.Request(0)
		r.Bytes = 3 << 20
		reply := h.Send(r)
		h.Env.InBounds("what a turn hands over", PayloadsOf(reply.Orphans...)...)

		if _, bytes := SizeOf(slices.Concat(PayloadsOf(reply.Orphans...)...)); len(reply.Orphans) > 1 &&
			bytes > r.Bytes {
			h.Env.Errorf("a turn of at most %d bytes handed over %d jobs of %d bytes",
				r.Bytes, len(reply.Orphans), bytes)
		}
	}
}

// Brief describes each payload by its first 16 bytes, its size and its score. To compare all bytes
// would take longer than the case.
func Brief(payloads []core.Payload) []string {
	list := make([]string, len(payloads))
	for i, p := range payloads {
		list[i] = fmt.Sprintf("%.16s of %d bytes at %g", p.Data, len(p.Data), p.Score)
	}
	return list
}

// Briefly describes claims, and their payloads as Brief does.
func Briefly(claims []core.Claim) []string {
	list := make([]string, len(claims))
	for i, c := range claims {
		list[i] = fmt.Sprintf("%s %v %+v: %v", c.ID, c.Receipt, c.State, Brief(c.Payloads))
	}
	return list
}

// SizeOf returns the number of payloads and the number of their bytes.
func SizeOf(payloads []core.Payload) (n, bytes int) {
	for i := range payloads {
		bytes += len(payloads[i].Data)
	}
	return len(payloads), bytes
}

// InBounds reports a failure if a call carried or moved more payloads or bytes than the bounds
// allow. parts are the payloads of each job or dead letter. A single job or dead letter may exceed
// the bounds: the first payload and the first settlement always fit.
func (e *Env) InBounds(what string, parts ...[]core.Payload) {
	e.TB.Helper()

	n, bytes, entries := 0, 0, 0
	for _, payloads := range parts {
		some, size := SizeOf(payloads)
		n, bytes = n+some, bytes+size
		if some > 0 {
			entries++
		}
	}

	if entries > 1 && (n > core.MaxTurnPayloads || bytes > core.MaxStepBytes) {
		e.Errorf("%s: %d payloads with %d bytes, want at most %d and %d",
			what, n, bytes, core.MaxTurnPayloads, core.MaxStepBytes)
	}
}

// PayloadsOf returns the payloads of claims, claim by claim.
func PayloadsOf(claims ...core.Claim) [][]core.Payload {
	lists := make([][]core.Payload, len(claims))
	for i := range claims {
		lists[i] = claims[i].Payloads
	}
	return lists
}

// ClaimAll makes turns until one claims nothing, and returns all claims.
func (h *Holder) ClaimAll() (all []core.Claim) {
	h.Env.TB.Helper()
	for {
		r := h.Request(core.MaxTurnJobs)
		r.Bytes = 1 << 30
		reply := h.Send(r)
		h.Env.InBounds("what a turn carries", append(PayloadsOf(reply.Claims...), PayloadsOf(reply.Orphans...)...)...)
		if len(reply.Claims) == 0 {
			return all
		}
		all = append(all, reply.Claims...)
	}
}

// Served makes turns until one claims a job. A store may need several turns to merge many pushes.
func (h *Holder) Served() core.Claim {
	h.Env.TB.Helper()
	for range MaxSteps {
		if claims := h.Claim(1); len(claims) > 0 {
			return claims[0]
		}
	}
	h.Env.TB.Fatalf("%d turns claimed nothing\nthe rule: %s", MaxSteps, h.Env.Rule)
	return core.Claim{}
}

// RepeatedSince reports whether calls were repeated since Repeats.Lossy had the given value. Then
// one step may have moved two parts.
func (e *Env) RepeatedSince(lossy int64) bool { return e.Repeats.Lossy.Load() > lossy }

// StepIDs repeats a step with the ids that it has not reached, until it has reached all. After each
// step it calls check with the number of ids reached until then. once is true if that step was not
// repeated.
func (e *Env) StepIDs(
	ids []string,
	do func(ids []string) (ports.StepReply, error),
	check func(reached int, once bool),
) (handled, steps int) {
	e.TB.Helper()

	for left := ids; len(left) > 0; steps++ {
		if steps > MaxSteps {
			e.Errorf("%d ids are still not reached after %d steps", len(left), steps)
			return handled, steps
		}

		since := e.Repeats.Lossy.Load()
		reply, err := do(left)
		e.Must(err, "a step in parts")
		if reply.Reached < 0 || reply.Reached > len(left) || reply.Handled > reply.Reached {
			e.Errorf("a step with %d ids reached %d and handled %d", len(left), reply.Reached, reply.Handled)
			return handled, steps
		}

		handled += reply.Handled
		left = left[reply.Reached:]
		check(len(ids)-len(left), !e.RepeatedSince(since))
	}

	return handled, steps
}

// MaxSteps is a number of steps or turns that no case needs on a correct store.
const MaxSteps = 50
