package engine

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
)

// outageLog logs failures of the store. It writes one line for each kind of loop and each cause,
// however many loops fail, again at each reminder while the failure lasts, and one line when the
// last loop of the kind gets an answer.
type outageLog struct {
	log *slog.Logger
	// callCtx is the context of the node's calls. Once it has ended, errors mean nothing.
	callCtx context.Context

	mu     sync.Mutex
	byLoop map[string]*outage // by the task of the loops
}

// outage is that of one kind of loop.
type outage struct {
	began   time.Time
	failing int                  // how many loops
	logged  map[string]time.Time // when each cause was last logged
}

const (
	// reminder is how often the log repeats a lasting condition.
	reminder = time.Minute
	// maxCauses bounds the lines of an outage whose error texts never repeat.
	maxCauses = 8
)

// loopStatus is whether the calls of one loop succeed. It is safe for concurrent use.
type loopStatus struct {
	node  *node
	doing string
	shard core.Shard // zero for a loop that serves all shards
	down  atomic.Bool
}

// listening is the task of the loop whose failures leave all the work to polls.
const listening = "listen for wake-ups"

// Tasks of two other loops.
const (
	holdingPermits    = "hold permits"
	recoveringOrphans = "recover orphans"
)

// callOf returns the name that FailureEvent.Call has for a loop's task.
func callOf(doing string) string {
	switch doing {
	case listening:
		return "listen"
	case holdingPermits:
		return "permits"
	case recoveringOrphans:
		return "orphans"
	}
	return doing
}

// digits are cut out of errors before their causes are compared: they are ports, shards,
// durations.
var digits = regexp.MustCompile(`[0-9]+`)

// failed notes that a call failed, notifies the observer, and logs the failure if it is new.
func (s *loopStatus) failed(err error) {
	outages := &s.node.outages
	if outages.callCtx.Err() != nil {
		return
	}
	outages.mu.Lock()
	o := outages.byLoop[s.doing]
	if o == nil {
		o = &outage{began: time.Now(), logged: make(map[string]time.Time)}
		outages.byLoop[s.doing] = o
	}
	if s.down.CompareAndSwap(false, true) {
		o.failing++
	}
	due, began, failing := o.due(digits.ReplaceAllString(err.Error(), "#")), o.began, o.failing
	outages.mu.Unlock()
	s.node.storeFailed(callOf(s.doing), s.shard, err)
	if due {
		outages.log.LogAttrs(context.Background(), slog.LevelWarn, s.failing(err), append(s.about(),
			slog.Any(keyError, err), slog.Int("loops", failing), slog.Time("since", began))...)
	}
}

// failing returns what an error means for the node. A loop that declares a queue anew, with a
// shard count that no longer matches, needs an operator: the store has not failed.
func (s *loopStatus) failing(err error) string {
	if mismatch := (*mismatchError)(nil); errors.As(err, &mismatch) {
		return "a queue was declared again with another shard count, so this server runs none of its shards; restart this server with that count"
	}
	if s.doing == listening {
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
	if known && time.Since(last) < reminder {
		return false
	}
	o.logged[cause] = time.Now()
	return true
}

// ok notes that a call was answered.
func (s *loopStatus) ok() {
	if !s.down.Load() {
		return
	}
	outages := &s.node.outages
	outages.mu.Lock()
	if !s.down.CompareAndSwap(true, false) {
		outages.mu.Unlock()
		return
	}
	o := outages.byLoop[s.doing]
	o.failing--
	over := o.failing == 0
	if over {
		delete(outages.byLoop, s.doing)
	}
	outages.mu.Unlock()
	if over {
		outages.log.LogAttrs(context.Background(), slog.LevelInfo, s.answering(), append(s.about(), slog.Duration("for", o.lasted()))...)
	}
}

// answering returns what the end of an outage means.
func (s *loopStatus) answering() string {
	if s.doing == listening {
		return "wake-ups work again"
	}
	return "the store answers again"
}

// about returns log attributes that name the loop.
func (s *loopStatus) about() []slog.Attr {
	about := []slog.Attr{slog.String("doing", s.doing)}
	if s.shard != (core.Shard{}) {
		about = append(about, slog.String(keyShard, s.shard.String()))
	}
	return about
}
