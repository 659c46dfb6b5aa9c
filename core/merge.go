package core

import (
	"fmt"
	"time"
)

// RuleKind decides the time of a queued job that has not failed when a push merges into it
// (docs/rules.md 2).
type RuleKind uint8

const (
	// Keep keeps the queued job's time.
	Keep RuleKind = iota
	// Earliest uses the earlier of both times.
	Earliest
	// Debounce moves the job to the time of the push, but at most to Limit after FirstPush, and
	// never to an earlier time than it had.
	Debounce
)

// DefaultDebounceLimit is the limit of a [Debounce] rule whose Limit is 0.
const DefaultDebounceLimit = time.Minute

// PushRule is the rule that a push carries for the time of queued jobs. The zero value is [Keep].
type PushRule struct {
	// Kind is the rule.
	Kind RuleKind
	// Limit is the longest time after its FirstPush to which Debounce may delay a job. 0 means
	// DefaultDebounceLimit. Other kinds ignore it.
	Limit time.Duration
}

// Validate returns [ErrInvalidRule] if the kind is unknown or the limit negative.
func (r PushRule) Validate() error {
	if r.Kind > Debounce {
		return fmt.Errorf("%w: kind %d; use Keep, Earliest or Debounce", ErrInvalidRule, r.Kind)
	}
	if r.Limit < 0 {
		return fmt.Errorf("%w: limit %v is negative; give 0 or more, 0 means 1 minute", ErrInvalidRule, r.Limit)
	}
	return nil
}

// MaxDelay returns Limit with its default applied.
func (r PushRule) MaxDelay() time.Duration {
	if r.Limit == 0 {
		return DefaultDebounceLimit
	}
	return r.Limit
}

// Pushed returns the state of the job that an entry without tags creates if its id has no queued
// job.
func Pushed(w When, now Instant) State {
	return State{PerformAt: w.Resolve(now), RetryCount: FreshRetryCount, FirstPush: now}
}

// MergePush returns the state of a queued job after a push has merged into it (docs/rules.md 2, row
// 1 and the push rules).
func MergePush(queued, incoming State, rule PushRule) State {
	merged := united(queued, queued, incoming)
	if !queued.Fresh() || queued.Slot != "" {
		return merged
	}
	switch rule.Kind {
	case Earliest:
		merged.PerformAt = min(queued.PerformAt, incoming.PerformAt)
	case Debounce:
		latest := merged.FirstPush.Add(rule.MaxDelay())
		merged.PerformAt = max(queued.PerformAt, min(incoming.PerformAt, latest))
	}
	return merged
}

// MergeReturn returns the state of a queued job after a claimed job of the same id was requeued:
// failed, untouched, snoozed or recovered (docs/rules.md 2, rows 2 and 3).
func MergeReturn(queued, incoming State) State {
	return united(incoming, queued, incoming)
}

// Merge returns the state of a queued job after a claimed job of the same id was requeued by b, in
// the incoming state. It is that of [MergeReturn], with one exception: if b.Awaits and the queued
// job was pushed since the claim, the earlier of both times stays. The queued job was pushed since
// the claim if its FirstPush differs from that of the claimed job. If both are equal, the queued
// job is the rest of a claim that took only a part of the job. The FirstPush of a push whose
// transaction committed since the claim may be earlier than that of the claimed job.
func (b PutBack) Merge(queued, incoming State) State {
	merged := MergeReturn(queued, incoming)
	if b.Awaits && queued.FirstPush != incoming.FirstPush {
		merged.PerformAt = min(queued.PerformAt, incoming.PerformAt)
	}
	return merged
}

// Revived returns the state of the job that a revive creates from a dead letter with these tags if
// the id has no queued job.
func Revived(tags Tags, now Instant) State {
	return State{PerformAt: now, RetryCount: FreshRetryCount, FirstPush: now, Tags: tags}
}

// MergeRevive returns the state of a queued job after payloads of a dead letter of its id with
// these tags were revived (docs/rules.md 2, the row about a job from the morgue). A held job stays
// held.
func MergeRevive(queued State, tags Tags, now Instant) State {
	revived := Revived(tags, now)
	if queued.Held() {
		return united(queued, queued, revived)
	}
	return united(revived, queued, revived)
}

// MergeImport returns the state of a queued job after a job of the same id was imported into it
// (docs/rules.md 2). If one of the two is held, its state stays. Otherwise the state of the job
// with the larger RetryCount stays, or on a tie that of the queued job, as for a push. Of two fresh
// jobs the earlier time stays, as by [Earliest]. So a repeated import changes nothing. A slot of the
// incoming job belongs to another queue and is dropped.
func MergeImport(queued, incoming State) State {
	incoming.Slot = ""
	held := incoming.Held()
	if held && !queued.Held() || held == queued.Held() && incoming.RetryCount > queued.RetryCount {
		return united(incoming, queued, incoming)
	}
	return MergePush(queued, incoming, PushRule{Kind: Earliest})
}

// united returns base with the Recoveries, the FirstPush and the Tags of the merge of a and b,
// which every merge computes in the same way.
func united(base, a, b State) State {
	base.Recoveries = max(a.Recoveries, b.Recoveries)
	base.FirstPush = min(a.FirstPush, b.FirstPush)
	base.Tags = a.Tags.Union(b.Tags)
	return base
}
