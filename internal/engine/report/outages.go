package report

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Outages logs failures of the store. It writes one line for each kind of loop and each cause,
// however many loops fail, again at each reminder while the failure lasts, and one line when the
// last loop of the kind gets an answer. The observer is notified of each failure.
type Outages struct {
	log      *slog.Logger
	observer ports.Observer
	// callCtx is the context of the node's calls. Once it has ended, errors mean nothing.
	callCtx context.Context

	mu     sync.Mutex
	byLoop map[string]*outage // by the call of the loops
}

// NewOutages returns the outages of a node whose calls have a context that ends with callCtx.
func NewOutages(callCtx context.Context, log *slog.Logger, observer ports.Observer) *Outages {
	return &Outages{log: log, observer: observer, callCtx: callCtx, byLoop: make(map[string]*outage)}
}

// outage is that of one kind of loop.
type outage struct {
	began   time.Time
	failing int                  // how many loops
	logged  map[string]time.Time // when each cause was last logged
}

const (
	// Reminder is how often the log repeats a lasting condition.
	Reminder = time.Minute
	// maxCauses bounds the lines of an outage whose error texts never repeat.
	maxCauses = 8
)

// Loop is whether the calls of one loop succeed. It is safe for concurrent use.
type Loop struct {
	outages *Outages
	call    string
	shard   core.Shard // zero for a loop that serves all shards
	down    atomic.Bool
}

// Loop returns the status of a loop. call is the name that ports.FailureEvent has for its calls.
// shard is zero for a loop that serves all shards.
func (o *Outages) Loop(call string, shard core.Shard) *Loop {
	return &Loop{outages: o, call: call, shard: shard}
}

// listen is the loop whose failures leave all the work to polls.
const listen = "listen"

// doing returns the loop's task, as it is logged.
func (s *Loop) doing() string {
	switch s.call {
	case listen:
		return "listen for wake-ups"
	case "permits":
		return "hold permits"
	case "orphans":
		return "recover orphans"
	case "settings":
		return "read the settings of queues"
	case "rate":
		return "start jobs by a rate"
	case "retention":
		return "remove old dead letters"
	case "ticks":
		return "look for due schedules"
	case "fire":
		return "fire schedules"
	}
	return s.call
}

// Called notes how a call ended. A failure is passed to the observer, and logged if it is new.
func (s *Loop) Called(err error) {
	if err != nil {
		s.failed(err)
	} else if s.down.Load() {
		s.answered()
	}
}

// Left notes that the loop has nothing to call any more, so that its last failure no longer counts.
func (s *Loop) Left() { s.over() }

// digits are cut out of errors before their causes are compared: they are ports, shards,
// durations.
var digits = regexp.MustCompile(`[0-9]+`)

func (s *Loop) failed(err error) {
	outages := s.outages
	if outages.callCtx.Err() != nil {
		return
	}

	outages.mu.Lock()
	o := outages.byLoop[s.call]
	if o == nil {
		o = &outage{began: time.Now(), logged: make(map[string]time.Time)}
		outages.byLoop[s.call] = o
	}
	if s.down.CompareAndSwap(false, true) {
		o.failing++
	}
	due, began, failing := o.due(digits.ReplaceAllString(err.Error(), "#")), o.began, o.failing
	outages.mu.Unlock()

	outages.observer.StoreFailed(ports.FailureEvent{Call: s.call, Shard: s.shard, Kind: ports.FailureOf(err), Err: err})
	if due {
		outages.log.LogAttrs(context.Background(), slog.LevelWarn, s.failing(err), append(s.about(),
			slog.Any(keyError, err), slog.Int("loops", failing), slog.Time("since", began))...)
	}
}

// failing returns what an error means for the node. A loop that declares a queue anew, with a
// shard count that no longer matches, needs an operator: the store has not failed.
func (s *Loop) failing(err error) string {
	if mismatch := (*MismatchError)(nil); errors.As(err, &mismatch) {
		return "a queue was declared again with another shard count, so this server runs none of its shards; " +
			"restart this server with that count"
	}
	if s.call == listen {
		return "wake-ups don't work; the store is polled"
	}
	return "the store fails; retrying until it answers"
}

func (o *outage) lasted() time.Duration { return time.Since(o.began).Round(time.Millisecond) }

// due reports whether to log a cause now, and notes that it is logged.
func (o *outage) due(cause string) bool {
	if _, known := o.logged[cause]; !known && len(o.logged) >= maxCauses {
		cause = "" // one entry for all the others
	}
	last, known := o.logged[cause]
	if known && time.Since(last) < Reminder {
		return false
	}
	o.logged[cause] = time.Now()
	return true
}

func (s *Loop) answered() {
	if o := s.over(); o != nil {
		s.outages.log.LogAttrs(context.Background(), slog.LevelInfo, s.answering(),
			append(s.about(), slog.Duration("for", o.lasted()))...)
	}
}

// over ends the loop's part in its outage. It returns the outage if that has ended.
func (s *Loop) over() *outage {
	outages := s.outages
	outages.mu.Lock()
	defer outages.mu.Unlock()
	if !s.down.CompareAndSwap(true, false) {
		return nil
	}
	o := outages.byLoop[s.call]
	if o.failing--; o.failing > 0 {
		return nil
	}
	delete(outages.byLoop, s.call)
	return o
}

// answering returns what the end of an outage means.
func (s *Loop) answering() string {
	if s.call == listen {
		return "wake-ups work again"
	}
	return "the store answers again"
}

// about returns log attributes that name the loop.
func (s *Loop) about() []slog.Attr {
	about := []slog.Attr{slog.String("doing", s.doing())}
	if s.shard != (core.Shard{}) {
		about = append(about, slog.String(keyShard, s.shard.String()))
	}
	return about
}
