package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/ports"
)

// KeyOf returns the key of a job's rate, such as its tenant, and that rate. An empty key is no limit.
// It calls functions of the user, which may panic.
type KeyOf func(c *core.Claim) (key string, rate core.Rate)

const (
	// slotsAhead is how far ahead of now a job gets a slot, and further by the time that it has waited. A
	// job without a slot asks again after this time. So old jobs come before new ones, within a few times
	// this time.
	slotsAhead = time.Hour
	// keyFault is how long a job waits whose key can't be told.
	keyFault = time.Minute
)

// keyAsk is what a turn's jobs of one key ask for. No job gets a slot further ahead than it may see, so
// Ahead is that of the youngest.
type keyAsk struct {
	ports.Take
	// slotted are the jobs that come with a slot of the key, and others are those that come without.
	slotted, others []asker
}

// asker is a claimed job, by its position, and how far ahead of now its slot may lie.
type asker struct {
	at    int
	ahead time.Duration
}

// held are claimed jobs that may start at a time, by the local clock.
type held []heldClaim

type heldClaim struct {
	core.Claim
	at time.Time
}

// remove removes one claim. ok is false if it is not there.
func (h *held) remove(id string, receipt core.Receipt) (c core.Claim, ok bool) {
	at := slices.IndexFunc(*h, func(one heldClaim) bool { return one.ID == id && one.Receipt == receipt })
	if at < 0 {
		return core.Claim{}, false
	}
	c = (*h)[at].Claim
	*h = slices.Delete(*h, at, at+1)
	return c, true
}

// takeAll removes and returns all claims.
func (h *held) takeAll() (claims []core.Claim) {
	for i := range *h {
		claims = append(claims, (*h)[i].Claim)
	}
	*h = nil
	return claims
}

// take removes the claims that may start, in the order of their times, and returns when the next one
// may.
func (h *held) take(now time.Time) (due []core.Claim, next time.Time) {
	slices.SortStableFunc(*h, func(a, b heldClaim) int { return a.at.Compare(b.at) })
	n := 0
	for n < len(*h) && !(*h)[n].at.After(now) {
		due = append(due, (*h)[n].Claim)
		n++
	}
	*h = slices.Delete(*h, 0, n)
	if len(*h) > 0 {
		next = (*h)[0].at
	}
	return due, next
}

// hold keeps claimed jobs until they may start.
func (s *shard) hold(later held) {
	if len(later) > 0 {
		s.claims.held = append(s.claims.held, later...)
		s.awaitHeld(s.node.clock.Local())
	}
}

// heldComes lets the held jobs start whose time has come.
func (s *shard) heldComes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaitHeld(s.node.clock.Local())
	s.publish()
}

// awaitHeld moves the held jobs whose time has come to the buffer, and waits for the next one.
func (s *shard) awaitHeld(now time.Time) {
	due, next := s.claims.held.take(now)
	s.claims.push(due, now)
	switch {
	case next.IsZero():
	case s.comes == nil:
		s.comes = time.AfterFunc(next.Sub(now), s.heldComes)
	default:
		s.comes.Reset(next.Sub(now))
	}
}

// keyedStart is when a claimed job may start. If off is set, the job goes back until then. slot is the
// key of its slot, or empty.
type keyedStart struct {
	in   time.Duration
	off  bool
	slot string
}

// askKeys returns what claimed jobs ask for, and puts off those whose keys can't be told. A job
// that was recovered too often asks for nothing, since it does not run.
func (s *shard) askKeys(claims []core.Claim, starts []keyedStart, now core.Instant) (asks []*keyAsk) {
	byKey := make(map[string]*keyAsk)
	for i := range claims {
		c := &claims[i]
		if s.queue.Policy.RecoveredTooOften(c) {
			continue
		}

		key, rate, err := s.queue.keyOf(c)
		if err != nil {
			starts[i] = keyedStart{in: keyFault, off: true}
			if s.node.jobLog.Mishap("RateBy " + s.ID.Queue) {
				s.node.log.Error("RateBy gave no usable key and rate, so its job is put back for a minute",
					"queue", s.ID.Queue, "id", c.ID, "error", err)
			}
			continue
		}
		if key == "" {
			continue
		}

		starts[i] = keyedStart{in: slotsAhead, off: true} // unless the store grants something
		a := byKey[key]
		if a == nil {
			a = &keyAsk{Take: ports.Take{Key: key, Rate: rate}}
			a.Hold, a.Soon = s.holdFor()
			byKey[key] = a
			asks = append(asks, a)
		}
		a.add(c, i, now)
	}
	return asks
}

// holdFor returns how long a claimed job may be held that has a slot, and how long one that gets
// its slot now. A job that gets its slot now is held for less, so that it does not take the start
// of one that had its slot before. RunDue waits for none.
func (s *shard) holdFor() (slotted, soon time.Duration) {
	if s.node.dispatcher.ByHand {
		return 0, 0
	}
	poll := s.node.cfg.PollInterval
	return min(poll, core.MaxHold), dispatch.Window(poll)
}

// add adds the ask of a job.
func (a *keyAsk) add(c *core.Claim, at int, now core.Instant) {
	one := asker{at, min(core.MaxAhead, slotsAhead+max(0, now.Sub(c.FirstPush)))}
	if a.Use+a.Want == 0 || one.ahead < a.Ahead {
		a.Ahead = one.ahead
	}
	if c.Slot == a.Key {
		a.Use++
		a.slotted = append(a.slotted, one)
	} else {
		a.Want++
		a.others = append(a.others, one)
	}
}

// keyOf returns the key and the rate of a job, or an error if the user's function panics or returns a
// rate that is none. A key that no limiter can have stands for its hash.
func (q *Queue) keyOf(c *core.Claim) (key string, rate core.Rate, err error) {
	err = guard.Goroutine(func() error {
		key, rate = q.KeyOf(c)
		return rate.Validate()
	})
	if err != nil || key == "" {
		return "", core.Rate{}, err
	}

	if len(key) > ports.MaxLimiterKey || core.Text(key) != key {
		hash := sha256.Sum256([]byte(key))
		key = "sha256:" + hex.EncodeToString(hash[:])
	}
	return key, rate, nil
}

// keyOrNone is keyOf without the rate. The key is empty if it can't be told.
func (q *Queue) keyOrNone(c *core.Claim) string {
	if q.KeyOf == nil {
		return ""
	}
	key, _, _ := q.keyOf(c)
	return key
}

// takeKeys takes the starts of claimed jobs. A second call takes the slots that only the older jobs
// of a key may have.
func (s *shard) takeKeys(asks []*keyAsk, claims []core.Claim, starts []keyedStart) {
	older := s.takeOnce(asks, claims, starts)
	if len(older) > 0 {
		s.takeOnce(older, claims, starts)
	}

	event := ports.SlotEvent{Queue: s.ID.Queue}
	for _, a := range asks {
		for _, one := range slices.Concat(a.slotted, a.others) {
			event.Want++
			if !starts[one.at].off {
				event.Granted++
			}
		}
	}
	s.node.observer.SlotsTaken(event)
}

// takeOnce makes one call. It returns what older jobs may ask for besides. If the store does not
// answer, none of the jobs starts.
func (s *shard) takeOnce(asks []*keyAsk, claims []core.Claim, starts []keyedStart) (older []*keyAsk) {
	takes := make([]ports.Take, len(asks))
	for i := range asks {
		takes[i] = asks[i].Take
	}

	ctx, cancel := s.node.callContext()
	defer cancel()
	reply, err := s.node.store.Take(ctx, ports.TakeRequest{Queue: s.ID.Queue, Takes: takes})
	if err == nil && len(reply.Grants) != len(takes) {
		err = fmt.Errorf("%w: the store has answered %d takes of queue %q with %d grants",
			ports.ErrUnusable, len(takes), s.ID.Queue, len(reply.Grants))
	}
	s.asking.Called(err)
	if err != nil {
		for _, a := range asks {
			for _, one := range slices.Concat(a.slotted, a.others) {
				starts[one.at] = keyedStart{in: s.node.cfg.PollInterval, off: true, slot: claims[one.at].Slot}
			}
		}
		return nil
	}

	for i, a := range asks {
		if again := a.answered(&reply.Grants[i], reply.Now, starts); again.Want > 0 {
			older = append(older, &again)
		}
	}
	return older
}

// answered takes the answer of the store: when each job of the key starts, or comes back. The
// oldest jobs get the first slots. If they may have the next ones too, which lie too far ahead for
// the youngest, they ask again.
func (a *keyAsk) answered(g *ports.Grant, now core.Instant, starts []keyedStart) (again keyAsk) {
	used := min(g.Used, len(a.slotted))
	for i, one := range a.slotted[:used] {
		starts[one.at] = keyedStart{in: a.Rate.Slot(g.Start, now, i).Sub(now), slot: a.Key}
	}

	others := slices.Concat(a.slotted[used:], a.others)
	slices.SortStableFunc(others, func(x, y asker) int { return cmp.Compare(y.ahead, x.ahead) })

	again.Take = ports.Take{Key: a.Key, Rate: a.Rate, Hold: a.Hold, Soon: a.Soon}
	for i, one := range others {
		in := a.Rate.Slot(g.First, now, i).Sub(now)
		switch {
		case i < g.Granted:
			starts[one.at] = keyedStart{in: in, off: in > a.Soon, slot: a.Key}
		case in <= one.ahead:
			again.Want, again.Ahead = again.Want+1, in
			again.others = append(again.others, one)
		}
	}
	return again
}
