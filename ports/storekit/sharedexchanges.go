package storekit

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// SharedExchanges sends small requests of several callers in one exchange with a server, which costs
// much less than an exchange for each. Requests share an exchange if they have equal keys and wait
// at the same time. No request waits for company: while fewer than UnderWay exchanges of its key
// are under way, it is sent at once and alone.
//
// Set the exported fields before the first call of Do. A SharedExchanges is safe for concurrent
// use. It has a goroutine only while requests wait.
type SharedExchanges[K comparable, Q, R any] struct {
	// Alone sends one request. It must return soon after the end of ctx, which is its caller's.
	Alone func(ctx context.Context, request Q) (R, error)
	// Together sends two or more requests in one exchange, in the order in which they came. It
	// returns an outcome for each. ctx does not end with the context of one caller: its deadline is
	// the latest of theirs, at most 30 s away.
	Together func(ctx context.Context, key K, requests []Q) []SharedOutcome[R]

	// UnderWay is the number of exchanges of a key from which further requests wait. Once they have
	// waited for Patience, they are sent beside those, but at most AtMost exchanges are under way.
	// So an exchange that hangs, as behind a lock, delays no other for long.
	UnderWay, AtMost int
	Patience         time.Duration
	// Most is the largest number of requests in one exchange, and Bytes the largest sum of their
	// sizes. A larger request is sent alone.
	Most, Bytes int

	mu   sync.Mutex
	keys map[K]*keyExchanges[Q, R] // those with exchanges under way
}

// SharedOutcome is what one request of an exchange has met.
type SharedOutcome[R any] struct {
	Reply R
	Err   error
	// Refused is true if the request has had no effect. Then its caller sends it alone, and Reply and
	// Err are ignored.
	Refused bool
}

// sharedTimeout bounds an exchange of several requests, since their callers may have no deadline.
const sharedTimeout = 30 * time.Second

// keyExchanges are the exchanges of a key. If requests wait, at least UnderWay are under way.
type keyExchanges[Q, R any] struct {
	underWay int
	waiting  []*sharedRequest[Q, R]
	// since is when the first of waiting came, or when the last exchange began if that is later.
	since time.Time
	// watched is true while a timer waits for late requests.
	watched bool
}

// sharedRequest is a request that waits for its outcome, until its context ends.
type sharedRequest[Q, R any] struct {
	ctx     context.Context
	request Q
	size    int
	done    chan SharedOutcome[R] // buffered for one outcome
}

// Do sends a request of the given size in bytes, and returns its reply. If ctx ends first, Do
// returns at once. The request is then dropped, if it still waits, or has an unknown outcome.
func (s *SharedExchanges[K, Q, R]) Do(ctx context.Context, key K, size int, request Q) (R, error) {
	w := s.enter(ctx, key, size, request)
	if w == nil {
		defer s.leave(key)
		return s.Alone(ctx, request)
	}

	select {
	case o := <-w.done:
		if o.Refused {
			return s.Alone(ctx, request)
		}
		return o.Reply, o.Err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

// enter returns nil if the request may be sent at once, as an exchange under way. Otherwise it
// returns the request as one that waits.
func (s *SharedExchanges[K, Q, R]) enter(ctx context.Context, key K, size int, request Q) *sharedRequest[Q, R] {
	s.mu.Lock()
	defer s.mu.Unlock()

	x := s.keys[key]
	if x == nil {
		x = new(keyExchanges[Q, R])
		if s.keys == nil {
			s.keys = make(map[K]*keyExchanges[Q, R])
		}
		s.keys[key] = x
	}
	if x.underWay < s.UnderWay {
		x.underWay++
		return nil
	}

	w := &sharedRequest[Q, R]{ctx: ctx, request: request, size: size, done: make(chan SharedOutcome[R], 1)}
	if len(x.waiting) == 0 {
		s.watch(key, x)
	}
	x.waiting = append(x.waiting, w)
	return w
}

// leave ends an exchange. If requests wait, a goroutine sends them in its place.
func (s *SharedExchanges[K, Q, R]) leave(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.keys[key]
	if len(x.waiting) > 0 && x.underWay <= s.UnderWay {
		go s.serve(key, x)
		return
	}
	s.end(key, x)
}

// end ends an exchange in whose place no other begins. The caller holds s.mu.
func (s *SharedExchanges[K, Q, R]) end(key K, x *keyExchanges[Q, R]) {
	x.underWay--
	if x.underWay == 0 {
		delete(s.keys, key)
	}
}

// watch notes that requests wait from now on, and sends them once they have waited for too long. The
// caller holds s.mu.
func (s *SharedExchanges[K, Q, R]) watch(key K, x *keyExchanges[Q, R]) {
	x.since = time.Now()
	if !x.watched {
		x.watched = true
		time.AfterFunc(s.Patience, func() { s.hasten(key, x) })
	}
}

// hasten begins another exchange if requests have waited for too long.
func (s *SharedExchanges[K, Q, R]) hasten(key K, x *keyExchanges[Q, R]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.watched = len(x.waiting) > 0; !x.watched {
		return
	}

	rest := s.Patience - time.Since(x.since)
	if rest <= 0 {
		rest = s.Patience
		if x.underWay < s.AtMost {
			x.underWay++
			go s.serve(key, x)
		}
	}
	time.AfterFunc(rest, func() { s.hasten(key, x) })
}

// serve sends waiting requests as one of the exchanges under way, until none waits.
func (s *SharedExchanges[K, Q, R]) serve(key K, x *keyExchanges[Q, R]) {
	for taken := s.take(key, x, true); taken != nil; taken = s.take(key, x, false) {
		s.send(key, taken)
		runtime.Gosched() // callers that have their outcome may come again, and share the next exchange
	}
}

// take returns the requests of the next exchange, without those whose callers have given up. It
// returns nil if none waits, or if more exchanges are under way than should, unless it is the first
// of its goroutine; then the exchange has ended.
func (s *SharedExchanges[K, Q, R]) take(key K, x *keyExchanges[Q, R], first bool) (taken []*sharedRequest[Q, R]) {
	s.mu.Lock()
	defer s.mu.Unlock()

	used, size := 0, 0
	if first || x.underWay <= s.UnderWay {
		for _, w := range x.waiting {
			if w.ctx.Err() == nil {
				if len(taken) == s.Most || len(taken) > 0 && size+w.size > s.Bytes {
					break
				}
				taken, size = append(taken, w), size+w.size
			}
			used++
		}
	}

	clear(x.waiting[:used])
	x.waiting = x.waiting[used:]
	if used > 0 {
		x.since = time.Now()
	}
	if taken == nil {
		s.end(key, x)
	}
	return taken
}

// send sends requests, and returns their outcomes to their callers.
func (s *SharedExchanges[K, Q, R]) send(key K, taken []*sharedRequest[Q, R]) {
	if len(taken) == 1 {
		w := taken[0]
		reply, err := s.Alone(w.ctx, w.request)
		w.done <- SharedOutcome[R]{Reply: reply, Err: err}
		return
	}

	requests := make([]Q, len(taken))
	for i, w := range taken {
		requests[i] = w.request
	}
	ctx, cancel := sharedContext(taken)
	defer cancel()
	for i, o := range s.Together(ctx, key, requests) {
		taken[i].done <- o
	}
}

// sharedContext returns the context of an exchange. It has the values of the first caller's, and
// the latest deadline.
func sharedContext[Q, R any](taken []*sharedRequest[Q, R]) (context.Context, context.CancelFunc) {
	most := time.Now().Add(sharedTimeout)
	var latest time.Time
	for _, w := range taken {
		deadline, ok := w.ctx.Deadline()
		if !ok || deadline.After(most) {
			latest = most
			break
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	return context.WithDeadline(context.WithoutCancel(taken[0].ctx), latest)
}
