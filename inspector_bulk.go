package skein

import "fmt"

// BulkOptions are the options of an action on many entries. The zero value is
// ready.
type BulkOptions struct {
	// Progress is told how far the action is, after each step that got on, from
	// the goroutine that called. nil is none.
	Progress func(Progress)
}

// Progress is how far an action is.
type Progress struct {
	// Done are the entries that are dealt with, of the Total that there were when
	// the action began: handled, or passed over since they don't match, or gone
	// meanwhile. An action that returns no error has dealt with all.
	Done  int
	Total int
	// Handled is as in Result.
	Handled int
}

// Result is what an action has done, also where it returned an error.
type Result struct {
	// Handled is how many jobs, dead letters or, by an edit, payloads were
	// changed. What was changed by a step whose reply was lost is not counted.
	Handled int
}

// action is a bulk action under way.
type action struct {
	// verb begins its errors.
	verb     string
	report   func(Progress)
	progress Progress
}

func (o *BulkOptions) action(verb string) *action {
	return &action{verb: verb, report: o.Progress}
}

// pass counts entries that are dealt with, of which some were handled.
func (a *action) pass(done, handled int) {
	a.progress.Handled += handled
	if done <= 0 {
		return
	}
	a.progress.Done += done
	if a.report != nil {
		a.report(a.progress)
	}
}

// end is what the action returns. An action without an error is done with all:
// what it did not meet is gone.
func (a *action) end(err error) (Result, error) {
	if err == nil {
		a.pass(a.progress.Total-a.progress.Done, 0)
		return Result{Handled: a.progress.Handled}, nil
	}
	return Result{Handled: a.progress.Handled}, fmt.Errorf("%s: %w", a.verb, err)
}
