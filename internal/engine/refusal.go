package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
)

// payloadOf names a payload of a batch: its job and its position.
type payloadOf struct{ job, position int }

// refusal is a payload that its codec refuses and that is to be retried: it and what
// is behind it wait, so that their order stays.
type decodeFailure struct {
	position int
	text     string
	// failed says that it is why the job has failed.
	failed bool
}

// BuryUndecodable sends a payload of job i to the morgue, since its codec refuses it.
func (b *Batch) BuryUndecodable(i, position int, reason error) {
	b.mu.Lock()
	if b.undecodable == nil {
		b.undecodable = make(map[payloadOf]bool)
	}
	if !b.returned(i) {
		b.undecodable[payloadOf{i, position}] = true
	}
	b.mu.Unlock()
	b.MarkBuried(i, position, reason)
}

// FailUndecodable says that a payload of job i can't be decoded, and that the job is
// to be retried for it. If alone, the job fails by the reason. Else the handler is
// given what is before the payload, and the job fails if that is done or buried.
func (b *Batch) FailUndecodable(i, position int, reason error, alone bool) {
	r := decodeFailure{position: position, text: b.shard.queue.Text(reason), failed: alone}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.returned(i) {
		return
	}
	if b.decodeFailures == nil {
		b.decodeFailures = make(map[int]decodeFailure)
	}
	b.decodeFailures[i] = r
}

// refuse gives the outcome of job i once it is known that the handler saw only what
// is before a refused payload. The Batch is locked.
func (b *Batch) applyDecodeFailure(i int, o core.Outcome) core.Outcome {
	r, ok := b.decodeFailures[i]
	if !ok || o.Kind != core.Done && o.Kind != core.Buried {
		return o
	}
	r.failed = true
	b.decodeFailures[i] = r
	marks := slices.Clone(o.Payloads)
	for position := range r.position {
		at, marked := findMark(marks, position)
		if !marked {
			m := core.PayloadOutcome{Position: position, Bury: o.Kind == core.Buried, Error: o.Error}
			marks = slices.Insert(marks, at, m)
		}
	}
	return core.Outcome{Kind: core.Failed, Error: r.text, Payloads: marks}
}

// markAt is where the mark on a payload is, or belongs.
func findMark(marks []core.PayloadOutcome, position int) (at int, found bool) {
	return slices.BinarySearchFunc(marks, position, func(o core.PayloadOutcome, p int) int { return o.Position - p })
}
