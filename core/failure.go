package core

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
