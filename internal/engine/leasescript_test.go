package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

// TestLease replays transcripts of a shard's lease: events are acquires, renewals and turns with their
// answers, and the passing of time.
func TestLease(t *testing.T) {
	replayAll(t, "lease", func(w *script) {
		s := &leaseScript{script: w, lease: lease{ttl: scriptTTL}}
		w.show = s.showState
		w.events = map[string]func(arguments){
			"acquired": s.acquired, "held": s.heldElsewhere, "fails": s.fails, "unassigned": s.unassigned,
			"unowned": s.unowned, "check": s.check, "renewed": s.renewed, "turn": s.turn, "call-off": s.callOff,
			"repeat": s.repeat, "answered": s.answered, "batch": s.batch, "released": s.released, "drop": s.drop,
		}
	})
}

type leaseScript struct {
	*script
	lease lease
	// call is the context of the last turn.
	call context.Context
}

func (s *leaseScript) showState() {
	if l := &s.lease; l.held {
		until, renewAt := l.until.Sub(scriptStart), l.renewAt.Sub(scriptStart)
		s.changed("held", "token %d until %v, to be renewed at %v", l.token, until, renewAt)
	} else {
		s.changed("held", "no")
	}

	switch {
	case s.call == nil:
	case s.call.Err() == nil:
		s.changed("call", "goes on")
	default:
		s.changed("call", "ended, %v", context.Cause(s.call))
	}
}

// acquired begins a lease of a TTL.
func (s *leaseScript) acquired(a arguments) {
	r := ports.AcquireReply{Token: int64(s.int(a.options["token"])), Remaining: scriptTTL}
	if from := s.lease.acquired(context.Background(), &r, s.sent(a)); from != "" {
		s.say("takes over from %s", from)
	}
}

// sent returns when a call was sent: at present, unless the event names the time.
func (s *leaseScript) sent(a arguments) time.Time {
	if !a.has("sent") {
		return s.now
	}
	return scriptStart.Add(s.duration(a.options["sent"]))
}

func (s *leaseScript) heldElsewhere(a arguments) { s.lease.heldElsewhere(a.options["by"]) }

func (s *leaseScript) fails(a arguments) { s.lease.notAcquired(errors.New(a.options["with"]), s.now) }

func (s *leaseScript) unassigned(arguments) { s.lease.unassigned() }

func (s *leaseScript) unowned(arguments) {
	if err := s.lease.unowned(s.now); err != nil {
		s.say("no owner is known: %v", err)
	}
}

// check is what the loop of renewals asks of a held lease.
func (s *leaseScript) check(arguments) {
	if err := s.lease.expired(s.now); err != nil {
		s.say("%v", err)
		return
	}
	if s.lease.renewal(s.now) {
		s.say("is to be renewed")
	}
	s.say("the next check is in %v", s.lease.nextCheck(s.now))
}

// renewed is the answer to a renewal or to a turn.
func (s *leaseScript) renewed(a arguments) { s.lease.extend(s.sent(a), scriptTTL) }

func (s *leaseScript) turn(arguments) { s.call = s.lease.ctx }

func (s *leaseScript) callOff(arguments) { s.lease.callOff() }

// repeat sends a turn again.
func (s *leaseScript) repeat(a arguments) {
	s.answered(a)
	s.turn(a)
}

// answered ends a turn.
func (s *leaseScript) answered(arguments) { s.lease.resetContext(context.Background()) }

// batch asks whether a batch may start, and whether one that started under a token is current.
func (s *leaseScript) batch(a arguments) {
	token := int64(s.int(a.options["token"]))
	s.say("may start: %v, of the current lease: %v", s.lease.valid(s.now), s.lease.holds(token))
}

func (s *leaseScript) released(arguments) { s.lease.end(context.Canceled) }

func (s *leaseScript) drop(arguments) {
	s.lease.end(ports.ErrLeaseLost)
	if s.lease.lost(s.now) {
		s.say("warns")
	}
}
