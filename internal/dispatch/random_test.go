package dispatch_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
)

// TestRandomHistories lets jobs come, turns bring some and fail, batches end and limits change, in
// any order and with any delay between an action and the event that follows. After each event the
// oracle checks the bounds, and that no lane waits while there is work for it. In the end all jobs
// have run.
func TestRandomHistories(t *testing.T) {
	for name, build := range map[string]core.SchedulerFunc{
		"lag": core.Lag, "seq": core.Seq, "weighted": core.WeightedBy(map[string]int{"A": 3}),
		"user": func(c core.SchedulerConfig) core.Scheduler { return struct{ core.Scheduler }{core.Lag(c)} },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rated := rapid.Bool().Draw(t, "rated")
				s := newSim(t, build, rated)
				s.sees = len(s.pools) == 1 && (name == "lag" || name == "weighted") && !rated
				for range rapid.IntRange(0, 400).Draw(t, "steps") {
					s.step(true)
				}

				for range 200_000 {
					if s.done() {
						return
					}
					s.step(false)
				}
				t.Fatalf("jobs starve: %+v", s.shards)
			})
		})
	}
}

// A shard with few jobs gets its turn although another one never runs out of jobs.
func TestNoShardStarvesBesideAFullOne(t *testing.T) {
	for name, build := range map[string]core.SchedulerFunc{"lag": core.Lag, "weighted": core.WeightedBy(nil)} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := newSim(t, build, false)
				for _, h := range s.shards {
					s.push(h, 3)
				}
				for range 20_000 {
					if full := s.shards[0]; full.stored == 0 {
						s.push(full, 1000)
					}
					s.step(false)
					if !slices.ContainsFunc(s.shards[1:], func(h *simShard) bool { return h.stored+h.claimed > 0 }) {
						return
					}
				}
				t.Fatalf("shards starve beside the first: %+v", s.shards[1:])
			})
		})
	}
}

// sim is what the engine and the store are to a node: it makes turns, runs batches and carries
// actions out, at a time and in an order that are drawn.
type sim struct {
	*rapid.T
	node   dispatch.Node
	now    time.Duration
	pools  []*dispatch.Pool
	lanes  []*simLane
	shards []*simShard
	queues []*simQueue
	// looks are the pools that want a look. grants is a pool that has granted by the last event.
	looks  map[*dispatch.Pool]bool
	grants *dispatch.Pool
	// sees is set if one scheduler sees all heads and never sleeps. Then no lane ever waits while
	// there is work for it. Otherwise one may wait until something else happens.
	sees bool
	// rated is set if queues may have rates. Then a lane may wait for a slot.
	rated bool
}

type simQueue struct {
	limit *dispatch.Limit
	// bounds are those of the queue. held is how many permits the server holds, and share how many it
	// may use. asked is the call for permits in flight.
	bounds      dispatch.Bounds
	held, share int
	permits     *dispatch.Permits
	review      bool
	asked       *dispatch.PermitCall
	// slots are the times of the slots that were granted and not used yet, and next is when the store
	// has the next one. wants is the call for slots in flight.
	slots    []time.Duration
	next     time.Duration
	wants    int
	interval time.Duration // of that call
}

// ready returns how many of the slots have come.
func (q *simQueue) ready(now time.Duration) (n int) {
	for _, at := range q.slots {
		if at <= now {
			n++
		}
	}
	return n
}

// most returns how many lanes may run the queue.
func (q *simQueue) most() int {
	most := math.MaxInt32
	if q.bounds.Total > 0 {
		most = min(q.held, q.share, q.bounds.Total)
	}
	if q.bounds.Lanes > 0 {
		most = min(most, q.bounds.Lanes)
	}
	return most
}

type simShard struct {
	*dispatch.Shard
	pool  *dispatch.Pool
	queue *simQueue
	// parallel bounds the batches that run, stored are in the store, due since a time, and claimed
	// have not started.
	parallel, stored, claimed, running int
	due                                core.Instant
	// turn is set if its next turn is to be made, and inFlight until that is answered. It claims want.
	turn, inFlight, failed bool
	want                   int
}

type simLane struct {
	dispatch.Lane
	pool *dispatch.Pool
	// waits is set once it has found nothing, and woken until it calls Next. shard is what it is
	// to run a batch of, and runs is set while it does.
	waits, woken bool
	shard        *simShard
	runs         bool
	asks         *dispatch.Question
}

func newSim(t *rapid.T, build core.SchedulerFunc, rated bool) *sim {
	s := &sim{T: t, rated: rated, looks: make(map[*dispatch.Pool]bool)}
	s.node.Config = dispatch.Config{
		Owner: "self", PollInterval: time.Second, LeaseTTL: 30 * time.Second,
		Prefetch: rapid.SampledFrom([]int{0, 256}).Draw(t, "prefetch"),
	}

	for range rapid.IntRange(1, 3).Draw(t, "queues") {
		q := &simQueue{limit: s.node.NewLimit(), permits: s.node.NewPermits(), share: math.MaxInt}
		s.queues = append(s.queues, q)
		s.bound(q)
	}

	pools, lanes := 1, rapid.IntRange(1, 8).Draw(t, "lanes")
	if rapid.IntRange(0, 3).Draw(t, "pinned") == 0 {
		pools, lanes = lanes, 1
	}
	for range pools {
		s.addPool(build, lanes)
	}

	return s
}

// addPool adds a pool of lanes that call Next, with shards of each queue.
func (s *sim) addPool(build core.SchedulerFunc, lanes int) {
	p := s.node.NewPool(nil, lanes)
	s.pools = append(s.pools, p)
	for range lanes {
		l := &simLane{pool: p, woken: true}
		l.Of = l
		s.lanes = append(s.lanes, l)
	}
	c := core.SchedulerConfig{PollInterval: s.node.PollInterval}
	var shards []*dispatch.Shard
	for i, q := range s.queues {
		for n := range rapid.IntRange(1, 3).Draw(s.T, "shards") {
			h := &simShard{pool: p, queue: q, parallel: rapid.SampledFrom([]int{1, 2, math.MaxInt32}).Draw(s.T, "parallel")}
			h.Shard = p.NewShard(h, 1, q.limit)
			s.shards, shards = append(s.shards, h), append(shards, h.Shard)
			c.Shards = append(c.Shards, core.Shard{Queue: string(rune('A' + i)), Index: n})
		}
	}
	order, _ := dispatch.NewOrder(build, c)
	p.SetShards(shards, order, s.time())
	s.carryOut()
}

func (s *sim) time() dispatch.Now {
	local := scriptStart.Add(s.now)
	return dispatch.Now{Local: local, Store: core.Instant(local.UnixMicro())}
}

func (h *simShard) view() dispatch.View {
	v := dispatch.View{Waiting: h.claimed, Free: h.parallel - h.running, Stock: 16, Idle: h.claimed+h.running == 0}
	v.Run = core.Head{Due: h.due, OK: h.claimed > 0}
	v.Claim = core.Head{Due: h.due, OK: h.stored > 0 && !h.failed}
	return v
}

// carryOut notes the actions.
func (s *sim) carryOut() {
	for _, a := range s.node.Actions(nil) {
		switch a.Kind {
		case dispatch.WakeLane:
			l := a.Lane.Of.(*simLane)
			l.woken, l.waits = true, false
		case dispatch.Turn:
			h := a.Shard.Of.(*simShard)
			h.turn, s.grants = true, h.pool
		case dispatch.ReviewPermits:
			for _, q := range s.queues {
				q.review = true
			}
		case dispatch.ReviewSlots:
			// the loop that asks looks at all queues, as below
		case dispatch.Look:
			s.looks[a.Pool] = true
		}
	}
}

// push stores jobs, and the shard hears of it.
func (s *sim) push(h *simShard, jobs int) {
	if h.stored == 0 {
		h.due = s.time().Store
	}
	h.stored += jobs
	h.pool.Show(h.Shard, h.view(), false, s.time())
	s.carryOut()
}

// step lets one of the things happen that may happen next. If busy is set, jobs come, turns fail
// and permits are few.
func (s *sim) step(busy bool) {
	var may []func()
	if busy {
		may = append(may, func() {
			s.push(rapid.SampledFrom(s.shards).Draw(s.T, "shard"), rapid.IntRange(1, 20).Draw(s.T, "jobs"))
		}, func() {
			s.bound(rapid.SampledFrom(s.queues).Draw(s.T, "bounded"))
		})
	}

	for _, l := range s.lanes {
		switch {
		case l.asks != nil:
			may = append(may, func() { s.answer(l) })
		case l.runs:
			may = append(may, func() { s.end(l) })
		case l.shard != nil:
			may = append(may, func() { s.take(l) })
		case l.woken:
			may = append(may, func() { s.next(l) })
		}
	}

	for _, h := range s.shards {
		switch {
		case h.inFlight:
			may = append(may, func() { s.reply(h, busy) })
		case h.turn:
			may = append(may, func() { s.makeTurn(h) })
		}
	}

	for _, q := range s.queues {
		switch {
		case q.asked != nil:
			may = append(may, func() { s.grantPermits(q, busy) })
		case q.review:
			may = append(may, func() { s.plan(q) })
		}
	}

	for _, q := range s.queues {
		if q.wants > 0 {
			may = append(may, func() { s.grantSlots(q, busy) })
		} else if q.bounds.Interval > 0 {
			may = append(may, func() { s.askForSlots(q, busy) })
		}
	}

	if len(may) == 0 || rapid.IntRange(0, 9).Draw(s.T, "time passes") == 0 {
		s.pass()
	} else {
		rapid.SampledFrom(may).Draw(s.T, "event")()
	}

	s.carryOut()
	s.check()
	s.grants = nil
}

// pass lets time pass until a pool wants a look, or a poll interval.
func (s *sim) pass() {
	s.now += time.Duration(rapid.IntRange(0, 30).Draw(s.T, "ms")) * time.Millisecond
	next := s.now + s.node.PollInterval
	for p := range s.looks {
		next = min(next, p.LookAt().Sub(scriptStart))
	}
	if rapid.Bool().Draw(s.T, "until a look") {
		s.now = max(s.now, next)
	}
	for _, p := range s.pools {
		if s.looks[p] && !p.LookAt().After(s.time().Local) {
			delete(s.looks, p)
			p.Look(s.time())
			s.carryOut()
		}
	}
	for _, q := range s.queues {
		q.review = true // the loop also looks by itself
	}
}

// askForSlots lets the server ask for slots, if it wants some, or whether the queue is stopped.
func (s *sim) askForSlots(q *simQueue, busy bool) {
	if want, call, _ := q.limit.Slots().Plan(s.time()); call && want == 0 {
		stopped := busy && rapid.Bool().Draw(s.T, "stopped")
		if stopped {
			q.slots = nil
		}
		q.limit.Slots().Checked(stopped, s.time())
	} else if call {
		q.wants, q.interval = want, q.bounds.Interval
	}
}

// grantSlots ends a call for slots. While it is busy, other servers take some, and calls fail.
func (s *sim) grantSlots(q *simQueue, busy bool) {
	want := q.wants
	q.wants = 0
	if q.bounds.Interval != q.interval { // the rate is another one
		q.limit.Slots().Granted(time.Millisecond, want, want, s.time().Local, s.time())
		return
	}
	if busy && rapid.IntRange(0, 4).Draw(s.T, "slots fail") == 0 {
		if rapid.Bool().Draw(s.T, "slow down") {
			q.slots = nil
			q.limit.Slots().Stop(s.time().Local.Add(10*time.Millisecond), s.time())
			q.limit.Slots().Granted(time.Millisecond, want, want, s.time().Local, s.time()) // it began before
		} else {
			q.limit.Slots().Refused(s.time().Local.Add(10*time.Millisecond), s.time())
		}
		return
	}

	first := max(q.next, s.now)
	if busy {
		first += time.Duration(rapid.IntRange(0, 3).Draw(s.T, "taken")) * q.bounds.Interval
	}
	granted, at := 0, first
	for ; granted < want && at <= s.now+dispatch.LookAhead; granted++ {
		q.slots = append(q.slots, at)
		at += q.bounds.Interval
	}
	q.next = at
	q.limit.Slots().Granted(time.Millisecond, want, granted, scriptStart.Add(first), s.time())
}

// bound gives a queue other bounds.
func (s *sim) bound(q *simQueue) {
	was := q.bounds.Interval
	q.bounds = dispatch.Bounds{Total: rapid.IntRange(0, 3).Draw(s.T, "total"), Lanes: rapid.IntRange(0, 3).Draw(s.T, "lanes")}
	if q.bounds.Total == 0 {
		q.share = math.MaxInt
	}
	if s.rated && rapid.Bool().Draw(s.T, "rated") {
		q.bounds.Interval = time.Duration(rapid.SampledFrom([]int{1, 10, 70}).Draw(s.T, "interval")) * time.Millisecond
	}
	if q.bounds.Interval != was {
		q.slots, q.next = nil, s.now
	}
	q.limit.Change(q.bounds, q.permits, s.time())
}

func (s *sim) next(l *simLane) {
	l.woken = false
	s.follow(l, l.pool.Next(&l.Lane, s.time()))
}

func (s *sim) answer(l *simLane) {
	q := l.asks
	l.asks = nil
	for _, e := range q.Ends {
		q.Scheduler.Ran(e.Index, e.OK)
	}
	s.follow(l, l.pool.Answer(&l.Lane, q, q.Scheduler.Next(q.Now.Store, q.Heads), s.time()))
}

func (s *sim) follow(l *simLane, step dispatch.Step) {
	switch l.asks = step.Ask; {
	case step.Run != nil:
		l.shard = step.Run.Of.(*simShard)
		s.useSlot(l.shard.queue)
		if running := s.running(l.shard.queue); running > l.shard.queue.most() {
			s.Fatalf("%d lanes run a queue of which %d may", running, l.shard.queue.most())
		}
	case step.Ask == nil:
		l.waits = true
		l.pool.Wait(&l.Lane, s.time())
	}
}

// useSlot uses a slot that has come, for a lane that is about to run a batch.
func (s *sim) useSlot(q *simQueue) {
	if q.bounds.Interval == 0 {
		return
	}
	if q.ready(s.now) == 0 {
		s.Fatalf("a batch starts at %v, and the slots are at %v", s.now, q.slots)
	}
	q.slots = q.slots[1:]
}

// take starts a batch of the lane's shard, if there is one.
func (s *sim) take(l *simLane) {
	h := l.shard
	ok := h.claimed > 0 && h.running < h.parallel
	if ok {
		h.claimed--
		h.running++
	}
	h.pool.Taken(h.Shard, true, ok, h.view(), s.time())
	if l.runs = ok; !ok {
		s.end(l)
	}
}

// end ends the lane's batch, if it has one.
func (s *sim) end(l *simLane) {
	h, ran := l.shard, l.runs
	if ran {
		h.running--
		h.pool.Show(h.Shard, h.view(), false, s.time())
	}
	if q := h.queue; !ran && q.bounds.Interval > 0 { // the slot is free again
		q.slots = append([]time.Duration{s.now}, q.slots...)
	}
	l.runs, l.shard = false, nil
	l.pool.BatchEnded(&l.Lane, ran, ran, time.Duration(rapid.IntRange(0, 3).Draw(s.T, "took"))*time.Millisecond, s.time())
	s.next(l)
}

func (s *sim) makeTurn(h *simShard) {
	h.turn = false
	if granted := h.Granted(); granted > 0 {
		h.want = h.pool.Carry(h.Shard, s.time())
		h.inFlight = true
		if h.want > granted {
			s.grants = h.pool
		}
	}
}

// reply ends the shard's turn: it brings jobs, or it gets no answer and will be repeated.
func (s *sim) reply(h *simShard, busy bool) {
	if busy && rapid.IntRange(0, 4).Draw(s.T, "fails") == 0 {
		h.failed = true
		h.pool.Lost(h.Shard, h.view(), s.time())
		return
	}
	n := min(h.want, h.stored)
	h.stored -= n
	h.claimed += n
	h.inFlight, h.failed = false, false
	h.pool.Answered(h.Shard, n, n > 0 && h.stored > 0, h.view(), s.time())
}

func (s *sim) plan(q *simQueue) {
	q.review = false
	if c, call, _ := q.permits.Plan(s.time().Local, s.node.PollInterval); call {
		q.asked, q.held = &c, min(q.held, c.Hold)
	}
}

// grantPermits ends the call for permits. While it is busy, the store has fewer, and other servers
// want some.
func (s *sim) grantPermits(q *simQueue, busy bool) {
	c := *q.asked
	q.asked = nil
	held, other := min(c.Hold, max(q.held, c.Limit)), core.PermitHolder{Owner: "other"}
	if busy {
		held = rapid.IntRange(min(q.held, held), held).Draw(s.T, "held")
		other.Held, other.Want = max(0, c.Limit-held), rapid.IntRange(0, c.Limit).Draw(s.T, "want")
	}
	holders := []core.PermitHolder{{Owner: "self", Held: held, Want: c.Want}, other}
	q.held, q.share = held, math.MaxInt
	if c.Want > 0 && other.Want > other.Held {
		q.share = dispatch.FairPermits(q.bounds.Total, holders, s.time().Store)[0]
	}
	q.permits.Answered(c, held, holders, s.time().Store, s.time())
}
