package dispatch

import (
	"time"

	"github.com/skeinq/skein/core"
)

const (
	// firstGrant is how many batches a shard is granted at first: most shards that become due have few
	// jobs. While the shard has more, the grant grows by grantGrowth.
	firstGrant  = 4
	grantGrowth = 4
)

// grantDemand grants batches to the shards that the scheduler chooses. It grants at once for lanes
// that wait, and ahead of free lanes only if the grant is worth a turn.
func (p *Pool) grantDemand(now Now) {
	starting := p.starting(now)
	for {
		short := p.short()
		if short > 0 {
			p.showPassed()
		} else if short+starting < max(1, min(starting/2, core.MaxTurnJobs)) {
			return
		}

		s := p.order.claim(p, now)
		if s == nil {
			return
		}

		switch n := min(short+starting, max(short, s.lacks()), s.claimable()); {
		case n > 0:
			p.grant(s, n)
			continue
		case s.part.limit.claimable(s.refill()) <= 0:
			s.part.limit.hold(s)
		default:
			s.hidden |= passedBy
			p.passed++
		}

		p.order.unclaim(s)
		p.recount(s)
	}
}

// showPassed shows the shards again that needed no grant while no lane was free.
func (p *Pool) showPassed() {
	if p.passed == 0 {
		return
	}
	p.passed = 0
	for _, s := range p.shards {
		if s.hidden&passedBy != 0 {
			s.hidden &^= passedBy
			p.recount(s)
		}
	}
}

// grant lets the next turn of a shard claim n batches.
func (p *Pool) grant(s *Shard, n int) {
	p.addGrant(s, n)
	p.recount(s)
	p.node.act(Action{Kind: Turn, Shard: s})
}

// addGrant adds n batches to the grant of a shard.
func (p *Pool) addGrant(s *Shard, n int) {
	s.granted += n
	s.part.change(0, n)
}

// GrantByHand grants n batches to a shard that has no grant. It is for a Node with Config.ByHand.
func (p *Pool) GrantByHand(s *Shard, n int) {
	if s.granted == 0 && n > 0 {
		p.grant(s, n)
	}
}

// starting returns how many batches will start within the claim window. It is the smaller of two
// estimates: by how many have started, and by how long batches take.
func (p *Pool) starting(now Now) int {
	if p.node.Prefetch == 0 {
		return 0
	}
	window := Window(p.node.PollInterval)
	started := int(time.Duration(p.starts.Count(now.Local)) * window / LookAhead)
	return min(started, p.lanes*p.pace.JobsWithin(window))
}

// Granted returns how many batches the shard's next turn is to claim. It is 0 while a turn carries
// the grant.
func (s *Shard) Granted() int {
	if s.sent {
		return 0
	}
	return s.granted
}

// Carry returns how many batches the turn that is being made is to claim: the grant, and the demand
// that has arisen since.
func (p *Pool) Carry(s *Shard, now Now) int {
	if s.granted > 0 {
		p.addGrant(s, max(0, p.demand(s, now)))
	} else if p.order.mayAdd(s, now) {
		p.addGrant(s, max(0, p.demand(s, now)))
		p.recount(s)
	}
	s.sent = s.granted > 0
	return s.granted
}

// demand returns how many batches of a shard are in demand beside its grant, as far as a turn that
// is made anyway may claim them.
func (p *Pool) demand(s *Shard, now Now) int {
	short := p.short()
	return min(short+p.starting(now), max(short, s.refill()-s.granted), s.claimable()-s.granted)
}

// Answered ends the grant that a turn has carried, which brought the given number of batches. more
// is true if the store has others. It takes the shard's current view.
func (p *Pool) Answered(s *Shard, batches int, more bool, v View, now Now) {
	if s.sent {
		s.more = more
		if more {
			s.size = min(s.size*grantGrowth, core.MaxTurnJobs)
		} else {
			s.size = max(firstGrant, batches)
		}
		p.endGrant(s, batches)
	}
	p.show(s, v)
	p.dispatch(now)
}

// Lost ends a grant that gets no answer. It takes the shard's current view.
func (p *Pool) Lost(s *Shard, v View, now Now) {
	if s.granted > 0 {
		s.size, s.more = firstGrant, false
		p.endGrant(s, 0)
	}
	p.show(s, v)
	p.dispatch(now)
}

// endGrant ends a grant that has brought a number of batches.
func (p *Pool) endGrant(s *Shard, batches int) {
	s.part.change(0, -s.granted)
	s.granted, s.sent = 0, false
	p.order.answered(s, batches)
}

// LookAhead is how far ahead jobs are claimed: those that will probably start within it.
const LookAhead = 50 * time.Millisecond

// Window returns LookAhead, or half a poll interval if that is shorter, because jobs that have
// waited for a poll interval are put back.
func Window(poll time.Duration) time.Duration { return min(LookAhead, poll/2) }

// paceWeight divides the share of the newest value in a [Pace]: that share is 1/paceWeight.
const paceWeight = 8

// Pace is the moving average of how long a job takes. The zero value knows nothing yet.
type Pace struct {
	known   bool
	average time.Duration
}

// Observe takes how long a batch with the given number of jobs took.
func (p *Pace) Observe(took time.Duration, jobs int) {
	each := took / time.Duration(jobs)
	if !p.known {
		p.known, p.average = true, each
		return
	}
	p.average += (each - p.average) / paceWeight
}

// JobsWithin returns how many jobs fit into d, one after another, or 0 if that is unknown.
func (p *Pace) JobsWithin(d time.Duration) int {
	if !p.known {
		return 0
	}
	return int(d / max(p.average, 1))
}

// Recent counts events within a window of time before now. Its window must be set.
type Recent struct {
	Window   time.Duration
	since    time.Time // when the present window began
	now, old int       // in this window, and in the one before
}

// Add adds an event.
func (r *Recent) Add(now time.Time) {
	r.advance(now)
	r.now++
}

// Count returns the number of events, as if those of the previous window had come evenly.
func (r *Recent) Count(now time.Time) int {
	r.advance(now)
	return r.now + int(time.Duration(r.old)*(r.Window-now.Sub(r.since))/r.Window)
}

// advance begins a new window if the present one is over.
func (r *Recent) advance(now time.Time) {
	switch passed := now.Sub(r.since); {
	case passed < r.Window:
	case passed < 2*r.Window:
		r.since, r.old, r.now = r.since.Add(r.Window), r.now, 0
	default:
		r.since, r.old, r.now = now, 0, 0
	}
}
