package core

import "fmt"

// Stale is what becomes of payloads of an id that are at or below its mark (docs/rules.md 16).
type Stale uint8

const (
	// TakeStale handles them like any others.
	TakeStale Stale = iota
	// DropStale drops and counts them.
	DropStale
)

// Validate returns [ErrInvalidOptions] for an unknown Stale, and for [DropStale] with a merge rule
// by which every payload counts, or without records, which hold the marks.
func (s Stale) Validate(rule MergeRule, keep KeepPast) error {
	switch {
	case s > DropStale:
		return fmt.Errorf("%w: Stale is %d; use TakeStale or DropStale", ErrInvalidOptions, s)
	case s == TakeStale:
		return nil
	case rule.Stays != Highest || rule.Same == SamePush:
		return fmt.Errorf("%w: DropStale needs the merge rule Latest or Newest; by the others it would lose events",
			ErrInvalidOptions)
	case !keep.Any():
		return fmt.Errorf("%w: DropStale needs Keep, since the records of ids have the scores that were done",
			ErrInvalidOptions)
	}
	return nil
}

// Mark is the highest score of the payloads of an id that were done, as far as a store has kept it
// (docs/rules.md 16).
//
// [MarkAt] makes one.
type Mark struct {
	// Score is as stores keep it: see [NormalScore].
	Score float64
	// OK is false if there is no mark.
	OK bool
}

// MarkAt returns the mark with a score.
func MarkAt(score float64) Mark { return Mark{Score: NormalScore(score), OK: true} }

// Covers reports whether a payload with the score is stale.
func (m Mark) Covers(score float64) bool { return m.OK && score <= m.Score }

// Raised returns the higher of two marks.
func (m Mark) Raised(other Mark) Mark {
	if !m.OK || other.OK && other.Score > m.Score {
		return other
	}
	return m
}

// Mark returns the mark that the record has. It is not OK if p is nil.
func (p *Past) Mark() Mark {
	if p == nil || !p.Raises {
		return Mark{}
	}
	return MarkAt(p.Score)
}

// Stale returns the number of payloads of the claim that are stale by its Mark. They are its first.
func (c *Claim) Stale() int {
	n := 0
	for n < len(c.Payloads) && c.Mark.Covers(c.Payloads[n].Score) {
		n++
	}
	return n
}

// DropStale returns the settlement that drops the first n payloads of the claim, which are stale, and
// puts back the others as they were claimed.
func (c *Claim) DropStale(n int) Settlement {
	o := Outcome{Kind: Untouched}
	if n >= len(c.Payloads) {
		o.Kind = Dropped
	} else {
		for i := range n {
			o.Payloads = append(o.Payloads, PayloadOutcome{Position: i})
		}
	}
	s := RetryPolicy{}.Settlement(c, &o, 0)
	s.Stale = n
	return s
}

// MarkDone sets Mark of the settlement of a claim that ended with the outcome: the highest score of
// the payloads that are done. A settlement with a Past needs none, since the record has that score.
// It then raises the mark.
func (s *Settlement) MarkDone(c *Claim, o *Outcome) {
	if s.Past != nil {
		s.Past.Raises = true
		return
	}
	own := o.Payloads
	for i := range c.Payloads {
		done := o.Kind == Done
		if len(own) > 0 && own[0].Position == i {
			done, own = !own[0].Bury, own[1:]
		}
		if done {
			s.Mark = s.Mark.Raised(MarkAt(c.Payloads[i].Score))
		}
	}
}
