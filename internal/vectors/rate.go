package vectors

// Rate is a case of rate.json: calls of one limiter, one after another. All times are in
// microseconds from the beginning of the case.
type Rate struct {
	About string
	Rate  string
	Steps []RateStep
}

// RateStep is a call of the limiter: a stop if Stop is set, and otherwise a take.
type RateStep struct {
	// At is when the call is made. It falls if the clock steps back.
	At int64
	// Rate is the rate from this call on, if it changes.
	Rate string
	// Stop is how long a stop lasts.
	Stop *int64
	// Use, Hold, Want, Ahead and Soon are what a take asks for. Uses are when it may use slots, and
	// Slots are what it is granted; if it is granted nothing, First is the next slot. Stopped is the
	// end of a stop that lasts.
	Use, Want      int
	Hold, Ahead    int64
	Soon           int64
	Uses, Slots    []int64
	First, Stopped int64
}

// RateOf returns the text of the rate of a call.
func (r *Rate) RateOf(call int) string {
	rate := r.Rate
	for _, step := range r.Steps[:call+1] {
		if step.Rate != "" {
			rate = step.Rate
		}
	}
	return rate
}
