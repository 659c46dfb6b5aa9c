package core

import (
	"bytes"
	"cmp"
	"slices"
)

// Payload is one pushed value (docs/rules.md 1). Its Data is its identity: equal bytes are the same
// payload. Under [SamePush] stored Data contain the score: see [MergeRule.Stored]. Data and Meta
// are shared between the store and its callers, and no side writes to them.
type Payload struct {
	// Data is the pushed bytes. It may be empty.
	Data []byte
	// Score orders the payloads of a job, lowest first. Data breaks ties.
	Score float64
	// Meta is additional bytes, such as a trace context, at most MaxMetaBytes. When equal payloads
	// merge, the payload that is kept keeps its Meta. nil means no Meta.
	Meta []byte
}

// Compare orders payloads by (Score, Data), as jobs hold them.
func (p Payload) Compare(q Payload) int {
	if c := cmp.Compare(p.Score, q.Score); c != 0 {
		return c
	}
	return bytes.Compare(p.Data, q.Data)
}

// indexAbove is the size from which a set looks payloads up in a map: below it
// a walk over the list is quicker than hashing.
const indexAbove = 8

// PayloadSet is the payloads of one job: a set by Data, in order of Compare. The zero value is an
// empty set. A set has no merge rule of its own: each call that merges gets the rule.
type PayloadSet struct {
	list  []Payload
	score map[string]float64
}

// NewPayloadSet returns the set of the given payloads, merged in order. It keeps no
// reference to the slice.
func NewPayloadSet(payloads []Payload) PayloadSet {
	s := PayloadSet{list: make([]Payload, 0, len(payloads))}
	for _, p := range payloads {
		s.Add(p)
	}
	return s
}

// MergePayloads returns the union of two ordered lists, as the zero [MergeRule] merges them
// (docs/rules.md 2). Of two payloads with equal bytes the one with the smaller score stays,
// together with its Meta; on a tie the existing one stays. The arguments are not changed.
func MergePayloads(existing, incoming []Payload) []Payload {
	s := NewPayloadSet(existing)
	s.Merge(incoming)
	return s.list
}

// Len returns the number of payloads.
func (s *PayloadSet) Len() int { return len(s.list) }

// List returns the payloads in order. The slice belongs to the set: read it only until
// the set changes.
func (s *PayloadSet) List() []Payload { return s.list }

// Add merges one payload into the set, as [MergePayloads] does. It reports whether the set
// had no payload with these bytes.
func (s *PayloadSet) Add(p Payload) (added bool) { return s.add(MergeRule{}, p) }

// AddBy merges one payload into the set by a rule. It reports whether the set had no payload with
// these bytes and has one now, and returns the number of payloads that were superseded: 1 if the
// set has one payload more and exceeds the rule's Keep, else 0. The given payload is that one if it
// is the lowest.
func (s *PayloadSet) AddBy(rule MergeRule, p Payload) (added bool, superseded int) {
	if added = s.add(rule, p); !added || rule.Keep == 0 || len(s.list) <= rule.Keep {
		return added, 0
	}
	lowest := s.list[0]
	delete(s.score, string(lowest.Data))
	s.list = slices.Delete(s.list, 0, 1)
	return !bytes.Equal(lowest.Data, p.Data), 1
}

// MergeBy merges a list into the set by a rule, one payload after another, and returns the number
// of payloads that were superseded.
func (s *PayloadSet) MergeBy(rule MergeRule, incoming []Payload) (superseded int) {
	if rule == (MergeRule{}) {
		s.Merge(incoming)
		return 0
	}
	for _, p := range incoming {
		_, n := s.AddBy(rule, p)
		superseded += n
	}
	return superseded
}

func (s *PayloadSet) add(rule MergeRule, p Payload) (added bool) {
	old, found := s.find(p.Data)
	if found {
		if !rule.replaces(old, p.Score) {
			return false
		}
		at, _ := slices.BinarySearchFunc(s.list, Payload{Data: p.Data, Score: old}, Payload.Compare)
		s.list = slices.Delete(s.list, at, at+1)
	}

	at := len(s.list)
	if at > 0 && p.Compare(s.list[at-1]) < 0 {
		at, _ = slices.BinarySearchFunc(s.list, p, Payload.Compare)
	}

	s.list = slices.Insert(s.list, at, p)
	s.remember(p)

	return !found
}

// mergeAbove is the size of both sides from which Merge goes through them once:
// below it placing one by one is quicker.
const mergeAbove = 32

// Merge merges an ordered list into the set, as [MergePayloads] does.
func (s *PayloadSet) Merge(incoming []Payload) {
	if len(incoming) < mergeAbove || len(s.list) < mergeAbove {
		for _, p := range incoming {
			s.Add(p)
		}
		return
	}

	better := make([]Payload, 0, len(incoming))
	replaced := false
	for _, p := range incoming {
		old, ok := s.find(p.Data)
		if ok && old <= p.Score {
			continue
		}
		replaced = replaced || ok
		better = append(better, p)
		s.remember(p)
	}

	// A replaced payload is found by its score, which is no longer the remembered one.
	existing := s.list
	if replaced {
		existing = slices.DeleteFunc(existing, func(p Payload) bool { return s.score[string(p.Data)] != p.Score })
	}

	s.list = inOrder(existing, better)
}

// inOrder merges two ordered lists into one.
func inOrder(a, b []Payload) []Payload {
	list := make([]Payload, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].Compare(a[0]) < 0 {
			list, b = append(list, b[0]), b[1:]
		} else {
			list, a = append(list, a[0]), a[1:]
		}
	}
	return append(append(list, a...), b...)
}

// TakeFirst removes the n lowest payloads, or all if there are fewer, and returns
// them; the returned slice belongs to the caller.
func (s *PayloadSet) TakeFirst(n int) []Payload {
	n = max(0, min(n, len(s.list)))
	taken := s.list[:n:n]
	s.list = s.list[n:]
	if s.score != nil {
		for _, p := range taken {
			delete(s.score, string(p.Data))
		}
	}
	return taken
}

// Remove removes the given payloads, in any order, from the set: those that it has with the same
// Data and the same Score. It returns their number.
func (s *PayloadSet) Remove(payloads []Payload) (removed int) {
	gone := make(map[string]bool, len(payloads))
	for _, p := range payloads {
		if score, found := s.find(p.Data); found && score == NormalScore(p.Score) {
			gone[string(p.Data)] = true
		}
	}
	s.list = slices.DeleteFunc(s.list, func(p Payload) bool { return gone[string(p.Data)] })
	for data := range gone {
		delete(s.score, data)
	}
	return len(gone)
}

func (s *PayloadSet) find(data []byte) (float64, bool) {
	if s.score != nil {
		score, ok := s.score[string(data)]
		return score, ok
	}
	for i := range s.list {
		if bytes.Equal(s.list[i].Data, data) {
			return s.list[i].Score, true
		}
	}
	return 0, false
}

func (s *PayloadSet) remember(p Payload) {
	if s.score != nil {
		s.score[string(p.Data)] = p.Score
		return
	}
	if len(s.list) > indexAbove {
		s.score = make(map[string]float64, 2*len(s.list))
		for _, q := range s.list {
			s.score[string(q.Data)] = q.Score
		}
	}
}
