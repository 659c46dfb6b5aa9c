package dashboard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
)

// How often the store is looked at, by all pages of all who look together. After a look it is left alone for restFactor times as long as that
// took, so that it spends less than a hundredth of its time on looks, and for minRest at least. maxRest bounds how old a page gets where the
// store is slow, or away: then a look costs it little.
const (
	restFactor = 99
	minRest    = 2 * time.Second
	maxRest    = 15 * time.Second
	// maxPageRest is the longest rest of a page that asks for more than the snapshot.
	maxPageRest = time.Minute
	// lookTime is how long a look may take, detailTime how much of it may go into what changes slowly, beyond one queue's, and awayTime
	// how much with it, where a part of the store is away, which is to be said soon.
	lookTime   = 4 * time.Second
	detailTime = 300 * time.Millisecond
	awayTime   = 500 * time.Millisecond
	// detailRest is how old that gets at least.
	detailRest = 10 * time.Second
	maxDetail  = 2 * time.Minute
)

// restAfter returns for how long the store is left alone after something that took so long.
func restAfter(cost, least, most time.Duration) time.Duration {
	return min(max(restFactor*cost, least), most)
}

// looker has the snapshot of the store that pages show.
type looker struct {
	inspector *inspect.Inspector
	clock     func() time.Time
	// redact returns what may be shown of an error's text of the store.
	redact func(string) string
	// showID returns what may be shown of an id; nil is the id itself.
	showID func(queue, id string) string
	// looking holds a value while somebody looks; mu guards the rest.
	looking chan struct{}
	mu      sync.Mutex
	last    *snapshot
	next    time.Time
	stale   bool
	// acts counts the actions, so that what was read during one is not kept.
	acts   int
	memory wrong.Memory
	newest map[string]*newest
}

// snapshot is what a look has found. It is not changed once it is there.
type snapshot struct {
	view  wrong.View
	wrong []wrong.Line
	// at is when it was taken by this process's clock.
	at time.Time
	// failed is why the store could not be looked at now: the figures are those of before, or none.
	failed error
	// checksFailed and historyFailed say why these are missing.
	checksFailed error
	details      map[string]*details
	// checked is when the checks were done, and how long they took.
	checked time.Time
	// pausesAt is when the audit was read for who paused queues.
	pausesAt time.Time
	cost     time.Duration
}

func newLooker(inspector *inspect.Inspector, redact func(string) string) *looker {
	return &looker{inspector: inspector, clock: time.Now, redact: redact, looking: make(chan struct{}, 1)}
}

// now returns the store's time as far as it is known.
func (l *looker) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.last.view.Now.IsZero() {
		return l.clock()
	}
	return l.last.view.Now.Add(l.clock().Sub(l.last.at))
}

// queues returns the names of the queues that were seen last.
func (l *looker) queues() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		for at := range l.last.view.Stats {
			names = append(names, l.last.view.Stats[at].Queue.Name)
		}
	}
	return names
}

// acted lets the next look be a new one: something was changed here.
func (l *looker) acted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acts++
	l.stale, l.newest = true, nil
}

// known returns the last snapshot, whether it is to be shown instead of a new one, and the number
// of actions so far.
func (l *looker) known() (s *snapshot, fresh bool, acts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.last != nil && !l.stale && l.clock().Before(l.next), l.acts
}

// look returns what the store holds, as it is or was a short while ago. Who asks while another looks gets what was found before, and
// waits only if there is nothing.
func (l *looker) look(ctx context.Context) (*snapshot, error) {
	s, fresh, _ := l.known()
	if fresh {
		return s, nil
	}
	select {
	case l.looking <- struct{}{}:
		defer func() { <-l.looking }()
	default:
		if s != nil {
			return s, nil
		}
		select {
		case l.looking <- struct{}{}:
			defer func() { <-l.looking }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s, fresh, acts := l.known()
	if fresh {
		return s, nil
	}
	// What is found counts for others too, so that it does not end with this request.
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer end()
	began := l.clock()
	s = l.take(ctx, s)
	l.keep(s, l.clock().Sub(began), acts)
	return s, nil
}

// keep makes a snapshot the last. It is stale if its look began after fewer actions than there
// were.
func (l *looker) keep(s *snapshot, cost time.Duration, acts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.wrong, l.memory = wrong.Now(&s.view, l.memory)
	l.last, l.stale = s, acts != l.acts
	l.next = l.clock().Add(restAfter(cost, minRest, maxRest))
}

// take asks the store. What it does not say is as it was before.
func (l *looker) take(ctx context.Context, before *snapshot) *snapshot {
	s := &snapshot{details: map[string]*details{}}
	if before != nil {
		s.view, s.details, s.checked, s.cost, s.checksFailed, s.pausesAt = before.view, before.details, before.checked, before.cost, before.checksFailed, before.pausesAt
	}
	s.view.ShowID = l.showID
	b := l.askBeside(ctx, s)
	stats, err := l.inspector.Stats(ctx)
	unreached, err := partial(err)
	s.at = l.clock()
	b.wait(err)
	if s.failed = err; err != nil {
		s.view.Silence = l.redact(err.Error())
		if s.view.Now.IsZero() {
			s.view.Now = s.at
		} else {
			s.view.Now = s.view.Now.Add(s.at.Sub(before.at))
		}
		return s
	}
	s.view.Silence, s.view.Stats, s.view.Unreached = "", stats, unreached
	s.view.Now = s.at
	for at := range stats {
		if at == 0 || stats[at].Now.Before(s.view.Now) {
			s.view.Now = stats[at].Now
		}
	}
	b.fill(l, s)
	l.pauses(ctx, s)
	l.detail(ctx, s)
	return s
}

// pauses reads from the audit who paused the paused queues, if one is new among them or it was read a while ago. What can't be read is as before.
func (l *looker) pauses(ctx context.Context, s *snapshot) {
	known, unknown := map[string]inspect.Action{}, false
	for at := range s.view.Stats {
		q := &s.view.Stats[at].Queue
		if a, found := s.view.Pauses[q.Name]; q.Paused && found {
			known[q.Name] = a
		} else if q.Paused {
			unknown = true
		}
	}
	s.view.Pauses = known
	rest := maxDetail
	if unknown {
		rest = detailRest
	}
	switch {
	case len(known) == 0 && !unknown:
		s.pausesAt = time.Time{} // the next pause is read at once
		return
	case !s.pausesAt.IsZero() && s.at.Sub(s.pausesAt) < rest:
		return
	}
	ctx, end := context.WithTimeout(ctx, detailTime)
	defer end()
	pauses, err := wrong.PausesOf(s.view.Stats, l.inspector.Actions(ctx, inspect.ActionsOptions{}))
	if s.pausesAt = s.at; err == nil {
		s.view.Pauses = pauses
	}
}

// partial returns the shards that a result lacks, or the error if it is another.
func partial(err error) ([]core.Shard, error) {
	var lacks *inspect.PartialError
	if errors.As(err, &lacks) {
		return lacks.Unreached, nil
	}
	return nil, err
}
