package memory

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// permits are the permits of a queue.
type permits struct {
	queue *queue

	mu          sync.Mutex
	byOwner     map[string]permit
	subscribers []*storekit.Subscriber
}

// permit is one owner's share of the permits.
type permit struct {
	attempt    int64
	held, want int
	ttl        time.Duration
	expires    core.Instant
}

// Permit implements [ports.Permitter].
func (s *Store) Permit(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PermitReply{}, err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.PermitReply{}, err
	}

	q.forgetMu.RLock()
	defer q.forgetMu.RUnlock()
	if q.forgotten {
		return ports.PermitReply{}, storekit.UnknownQueue(r.Queue)
	}

	q.permits.mu.Lock()
	defer q.permits.mu.Unlock()
	return q.permits.permit(&r, s.b.now())
}

// permit carries out a call. It needs the lock.
func (p *permits) permit(r *ports.PermitRequest, now core.Instant) (ports.PermitReply, error) {
	mine, known := p.byOwner[r.Owner]
	if known && now < mine.expires && r.Attempt < mine.attempt {
		return ports.PermitReply{}, storekit.StalePermit(r)
	}

	p.expire(now)
	mine = p.byOwner[r.Owner] // zero if it has just expired
	taken, wanted := 0, false
	for owner, other := range p.byOwner {
		if owner != r.Owner {
			taken += other.held
			wanted = wanted || other.want > other.held
		}
	}

	next := permit{
		attempt: r.Attempt,
		want:    r.Want,
		ttl:     r.TTL,
		expires: now.Add(r.TTL),
		held:    min(r.Hold, max(mine.held, r.Limit-taken)),
	}
	if r.Want == 0 {
		delete(p.byOwner, r.Owner)
	} else {
		p.byOwner[r.Owner] = next
	}

	if next.held < mine.held && wanted {
		p.wake()
	}
	return ports.PermitReply{Now: now, Remaining: next.expires.Sub(now), Held: next.held, Holders: p.holders()}, nil
}

// expire removes permits whose TTL is over, and shortens those that last too long since the clock
// stepped back.
func (p *permits) expire(now core.Instant) {
	for owner, known := range p.byOwner {
		known.expires = min(known.expires, now.Add(known.ttl))
		if known.expires <= now {
			delete(p.byOwner, owner)
		} else {
			p.byOwner[owner] = known
		}
	}
}

// holders lists all holders in order of owner.
func (p *permits) holders() []core.PermitHolder {
	list := make([]core.PermitHolder, 0, len(p.byOwner))
	for owner, known := range p.byOwner {
		list = append(list, core.PermitHolder{Owner: owner, Held: known.held, Want: known.want})
	}
	slices.SortFunc(list, func(a, b core.PermitHolder) int { return strings.Compare(a.Owner, b.Owner) })
	return list
}

// wake notifies the subscribers.
func (p *permits) wake() {
	for _, sub := range p.subscribers {
		sub.Wake(ports.PermitsOf(p.queue.record.Name))
	}
}

func (p *permits) subscribe(sub *storekit.Subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, sub)
}

func (p *permits) unsubscribe(sub *storekit.Subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = slices.DeleteFunc(p.subscribers, func(known *storekit.Subscriber) bool { return known == sub })
}

func (p *permits) isForgotten() bool { return p.queue.isForgotten() }

// endSubscriptions closes the channels of the subscribers.
func (p *permits) endSubscriptions() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sub := range p.subscribers {
		sub.End()
	}
}
