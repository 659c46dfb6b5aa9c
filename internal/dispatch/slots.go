package dispatch

import "time"

// Slots are what this server holds of the starts that the rate of a queue allows. The store grants
// them, over all servers: each is the right to start one batch, from a time on. The server asks for
// those that its lanes could use within LookAhead, and one for the next lane that becomes free if
// other queues use all of them, and claims no more batches than it holds slots. It keeps one unused
// slot, and not for long: the store may have been told meanwhile that nothing may start. While jobs
// wait for a lane, it asks the store once per poll interval whether that is so.
type Slots struct {
	node  *Node
	limit *Limit
	// ready are the slots whose time has come. runs are those that lie ahead, in order.
	ready int
	runs  []run
	// movedAt is when a slot has come or was used last, and moved is set if one was used since.
	movedAt time.Time
	moved   bool
	// size bounds what is asked for while the store has more jobs than were claimed. It doubles with
	// each answer in full.
	size int
	// inFlight is set until the last call is answered, and asked is the interval of that call. askAt is
	// when to make the next one at the earliest.
	inFlight bool
	asked    time.Duration
	askAt    time.Time
	// took is how long the last call has taken.
	took time.Duration
}

// stopped stands for the interval of a call that began before a stop: its slots are dropped.
const stopped time.Duration = -1

// run is a number of slots, an interval apart.
type run struct {
	next time.Time
	n    int
}

// interval returns the time between two slots, or 0 if the queue has no rate.
func (s *Slots) interval() time.Duration { return s.limit.bounds.Interval }

// held returns how many slots the server holds.
func (s *Slots) held() int {
	n := s.ready
	for _, r := range s.runs {
		n += r.n
	}
	return n
}

// reset drops all slots: the rate is another one.
func (s *Slots) reset() {
	s.ready, s.runs, s.size, s.askAt = 0, nil, 1, time.Time{}
}

// advance notes which slots have come. Those that are unused after LookAhead go, except one, and those
// for batches that are claimed or on their way. The last one stays for two poll intervals, since a
// scheduler may sleep for one.
func (s *Slots) advance(now time.Time) {
	for len(s.runs) > 0 && !s.runs[0].next.After(now) {
		r := &s.runs[0]
		came := min(r.n, int(now.Sub(r.next)/s.interval())+1)
		r.next = r.next.Add(time.Duration(came) * s.interval())
		if r.n -= came; r.n == 0 {
			s.runs = s.runs[1:]
		}
		s.ready += came
		s.moved = true
	}

	switch unused := now.Sub(s.movedAt); {
	case s.moved:
		s.moved, s.movedAt = false, now
	case unused > 2*s.node.PollInterval:
		s.keep(0)
	case unused > LookAhead:
		s.keep(1)
	}
}

// keep drops all slots that have come but a number, and but those for batches that are claimed or on
// their way.
func (s *Slots) keep(slots int) {
	if most := max(slots, s.limit.claimed); s.ready > most {
		s.ready, s.size = most, 1
	}
}

// use notes that a batch starts, or that one that was about to has not.
func (s *Slots) use(batches int) {
	s.ready -= batches
	s.moved = true
}

// comesAt returns when the next slot comes, or zero.
func (s *Slots) comesAt() time.Time {
	if len(s.runs) == 0 {
		return time.Time{}
	}
	return s.runs[0].next
}

// want returns how many more slots the lanes could use: for the free ones, and for batches that will
// start within LookAhead. A queue that may not run another batch wants none.
func (s *Slots) want(now Now) int {
	if !s.limit.rated() || s.node.stopped || s.node.ByHand {
		return 0
	}

	need, starting := 0, 0
	for _, t := range s.limit.parts {
		batches := t.runnable + t.granted
		if t.holdsClaims() {
			batches += s.size
		}
		soon := t.pool.starting(now)
		starting += soon
		need += min(batches, t.lanesToCome()+soon)
	}

	if most := s.limit.most(); most < boundless {
		need = min(need, max(0, most-s.limit.running)+starting)
	}
	return max(0, need-s.held())
}

// review asks for a Plan if the server wants more slots.
func (s *Slots) review(now Now) {
	if !s.inFlight && !now.Local.Before(s.askAt) && s.want(now) > 0 {
		s.node.act(Action{Kind: ReviewSlots})
	}
}

// Plan returns whether to ask the store now, for how many slots, and how long to wait until the next
// Plan. The slots may lie as far ahead as Ahead says. A call for no slots is to be answered by Checked.
func (s *Slots) Plan(now Now) (want int, call bool, wait time.Duration) {
	wait = time.Hour
	s.advance(now.Local)
	if s.inFlight {
		return 0, false, wait
	}

	want = s.want(now)
	left, fresh := s.askAt.Sub(now.Local), s.freshFor(now.Local)
	switch {
	case want > 0 && left <= 0:
		call = true
	case fresh <= 0 && s.waits(now):
		want, call = 0, true
	case left > 0: // also if none is wanted: review asks for no Plan before askAt
		want, wait = 0, left
	}

	if fresh > 0 {
		wait = min(wait, fresh)
	}
	if call {
		s.inFlight, s.asked = true, s.interval()
	}
	return want, call, wait
}

// freshFor returns how long an unused slot need not be checked.
func (s *Slots) freshFor(now time.Time) time.Duration {
	switch {
	case s.ready > 0:
		return s.movedAt.Add(s.node.PollInterval).Sub(now)
	case len(s.runs) > 0:
		return s.comesAt().Add(s.node.PollInterval).Sub(now)
	}
	return time.Hour
}

// waits reports whether the queue has jobs that could start if a lane were free.
func (s *Slots) waits(now Now) bool {
	for _, t := range s.limit.parts {
		for _, shard := range t.pool.shards {
			if shard.part == t && (shard.runnable > 0 || shard.view.Claim.DueBy(now.Store)) {
				return true
			}
		}
	}
	return false
}

// Checked takes the answer to a call for no slots: whether the queue is stopped. If it is not, unused
// slots stay.
func (s *Slots) Checked(stopped bool, now Now) {
	s.inFlight, s.movedAt = false, now.Local
	if stopped {
		s.ready, s.runs = 0, nil
	}
	s.limit.dispatch(now)
}

// Ahead returns how far ahead the slots of a call may lie: LookAhead or, if calls take long, as far as
// it takes to have the next ones in time. It is less than a poll interval, after which claimed jobs go
// back.
func (s *Slots) Ahead() time.Duration {
	return max(LookAhead, min(2*s.took, s.node.PollInterval/2))
}

// Granted takes the answer to a call for a number of slots: how long it took, how many are granted, and
// the time of the first of them, or of the first that could be.
func (s *Slots) Granted(took time.Duration, want, granted int, first time.Time, now Now) {
	s.inFlight, s.took = false, took
	granted = min(granted, want)
	if s.asked != s.interval() { // the rate is another one
		s.limit.dispatch(now)
		return
	}

	if granted > 0 {
		s.runs = append(s.runs, run{next: first, n: granted})
	}
	if granted < want {
		next := first.Add(time.Duration(granted) * s.interval()).Add(-s.Ahead())
		s.askAt = earlier(later(next, now.Local.Add(LookAhead/4)), now.Local.Add(s.node.PollInterval))
	} else {
		s.size = min(2*s.size, int(LookAhead/s.interval())+1)
	}
	s.limit.dispatch(now)
}

// Refused notes that a call has failed, and that the next one may be made at a time.
func (s *Slots) Refused(retryAt time.Time, now Now) {
	s.inFlight, s.askAt = false, retryAt
	s.limit.dispatch(now)
}

// Stop drops all slots, also those of a call in flight, since a handler has asked for a pause. The next
// call may be made at a time.
func (s *Slots) Stop(retryAt time.Time, now Now) {
	s.ready, s.runs, s.asked, s.askAt = 0, nil, stopped, retryAt
	s.limit.dispatch(now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
