package core

import (
	"cmp"
	"slices"
)

// Failure is a failure of a job, or the reason of a burial (docs/rules.md 1). The zero value is no
// failure.
type Failure struct {
	// At is the time of the failure. Servers take it from their estimate of the store's clock, and
	// nothing is decided by it. 0 means that it is unknown.
	At Instant
	// Node is the name of the server that ran the job. Empty means none or unknown.
	Node string
	// Text is the text of the error, at most MaxErrorBytes; see [ErrorText].
	Text string
}

// Stored returns the failure in the form in which stores keep it: with At limited to the range of
// instants, Node truncated to MaxNodeBytes, and Text by [ErrorText].
func (f Failure) Stored() Failure {
	f.At = max(0, min(f.At, MaxInstant))
	f.Node, f.Text = CutText(Text(f.Node), MaxNodeBytes), ErrorText(f.Text)
	return f
}

// MaxFailures is the maximum number of failures that a job or a dead letter keeps.
const MaxFailures = 5

// Failures are the last failures of a job or of a dead letter, the newest first. nil means that
// there is none. A list is never changed in place, so jobs and dead letters may share it.
type Failures []Failure

// Newest returns the newest failure, or the zero value if there is none.
func (l Failures) Newest() Failure {
	if len(l) == 0 {
		return Failure{}
	}
	return l[0]
}

// With returns the list after one more failure, as [Failures.Stored] returns it.
func (l Failures) With(newest Failure) Failures {
	return append(Failures{newest}, l...).Stored()
}

// Stored returns the list in the form in which stores keep it (docs/rules.md 1): each failure as
// [Failure.Stored] returns it, without zero values, and of these the first MaxFailures. Their texts
// have at most MaxErrorBytes together. If they have more, each but the newest is truncated to an
// equal share of what the newest leaves.
func (l Failures) Stored() Failures {
	var stored Failures
	size := 0
	for _, f := range l {
		if f = f.Stored(); f != (Failure{}) && len(stored) < MaxFailures {
			stored, size = append(stored, f), size+len(f.Text)
		}
	}
	if size <= MaxErrorBytes {
		return stored
	}

	older := stored[1:]
	share := (MaxErrorBytes - len(stored[0].Text)) / len(older)
	for i := range older {
		older[i].Text = CutText(older[i].Text, cmp.Or(share, -1)) // 0 would be the whole text
	}
	return slices.DeleteFunc(stored, func(f Failure) bool { return f == Failure{} })
}

// Short returns the list as pages show it that limit error texts to a number of bytes: with 0 all
// failures, otherwise only the newest, its text truncated by [CutText].
func (l Failures) Short(errorBytes int) Failures {
	if errorBytes == 0 || len(l) == 0 {
		return l
	}
	newest := l[0]
	newest.Text = CutText(newest.Text, errorBytes)
	return Failures{newest}.Stored()
}
