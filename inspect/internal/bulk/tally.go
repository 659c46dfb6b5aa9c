package bulk

// Tally counts the entries of an action.
type Tally struct {
	// Done, Total and Handled are as in inspect.Progress.
	Done, Total, Handled int
	// Met is the number of entries that the action has found as they were when it began: those that
	// it handled, and those that don't match.
	Met int
	// Report is called when entries have been dealt with. nil means no call.
	Report func()
}

// Pass counts done entries as dealt with, and handled entries as handled.
func (t *Tally) Pass(done, handled int) {
	t.Handled += handled
	if done <= 0 {
		return
	}
	t.Done = min(t.Done+done, t.Total) // a continued action may meet more
	if t.Report != nil {
		t.Report()
	}
}
