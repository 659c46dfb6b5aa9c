package dashboard

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/wrong"
)

// How often the store is looked at, by all pages of all users together. After a look it rests, see
// [service.RestAfter], for at least minRest. maxRest bounds how old a page gets if the store is
// slow or unreachable: then a look costs it little.
const (
	minRest = 2 * time.Second
	maxRest = 15 * time.Second
	// maxPageRest is the longest rest of a page that asks for more than the snapshot.
	maxPageRest = time.Minute
	// lookTime is how long a look may take. detailTime is the part of it for values that change
	// slowly, except those of one queue. awayTime is the limit including that queue's values if a part
	// of the store can't be reached, which should be shown soon.
	lookTime   = 4 * time.Second
	detailTime = 300 * time.Millisecond
	awayTime   = 500 * time.Millisecond
	// detailRest is the least age at which those values are read again.
	detailRest = 10 * time.Second
	maxDetail  = 2 * time.Minute
)

// looker has the snapshot of the store that pages show.
type looker struct {
	inspector *inspect.Inspector
	clock     func() time.Time
	// shown redacts ids and errors.
	shown *service.Service
	// looking holds a value while a page looks; mu guards the rest.
	looking chan struct{}
	mu      sync.Mutex
	last    *snapshot
	next    time.Time
	stale   bool
	// acts counts the actions, so that results read during one are not kept.
	acts   int
	memory wrong.Memory
	newest map[string]*newest
	// again are the queues whose details the next look reads, however old they are.
	again map[string]bool
}

func newLooker(inspector *inspect.Inspector, shown *service.Service) *looker {
	return &looker{inspector: inspector, clock: time.Now, shown: shown, looking: make(chan struct{}, 1)}
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
		names = l.last.queues()
	}
	return names
}

// acted makes the next page read the store: an action has changed something.
func (l *looker) acted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acts++
	l.stale, l.newest = true, nil
}

// detailAgain makes the next look read the details of a queue: an action has changed them.
func (l *looker) detailAgain(queue string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again == nil {
		l.again = map[string]bool{}
	}
	l.again[queue] = true
}

// takeAgain returns the queues of detailAgain since its last call.
func (l *looker) takeAgain() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.again
	l.again = nil
	return again
}

// known returns the last snapshot, whether it is to be shown instead of a new one, and the number
// of actions so far.
func (l *looker) known() (s *snapshot, fresh bool, acts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.last != nil && !l.stale && l.clock().Before(l.next), l.acts
}

// look returns the contents of the store, at present or from a short while ago. A request that
// comes while another looks gets the previous result, and waits only if there is none.
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
	// The result is for other requests too, so the look does not end with this request.
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer end()

	began := l.clock()
	s = l.take(ctx, s)
	l.keep(s, l.clock().Sub(began), acts)
	return s, nil
}

// keep makes a snapshot the last one. It is stale if its look began after fewer actions than there
// were.
func (l *looker) keep(s *snapshot, cost time.Duration, acts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.wrong, l.memory = wrong.Now(&s.view, l.memory)
	l.last, l.stale = s, acts != l.acts
	l.next = l.clock().Add(service.RestAfter(cost, minRest, maxRest))
}

// take asks the store. Parts without an answer stay as they were.
func (l *looker) take(ctx context.Context, before *snapshot) *snapshot {
	s := &snapshot{details: map[string]*details{}}
	if before != nil {
		s.view, s.details, s.checked, s.cost, s.checksFailed, s.pausesAt =
			before.view, before.details, before.checked, before.cost, before.checksFailed, before.pausesAt
		s.answered, s.silent = before.answered, before.silent
	}
	s.view.ShowID = l.shown.ID

	// The store is asked for the statistics and for what is beside them at the same time.
	b := l.askBeside(ctx, s)
	stats, err := l.inspector.Stats(ctx)
	unreached, err := service.Partial(err)
	s.at = l.clock()
	b.wait(err)

	if s.failed = err; err != nil {
		if before == nil || before.failed == nil {
			s.silent = s.at
		}
		s.view.Silence = cmp.Or(l.shown.ErrorText("", "", err.Error()), hiddenText)
		if s.view.Now.IsZero() {
			s.view.Now = s.at
		} else {
			s.view.Now = s.view.Now.Add(s.at.Sub(before.at))
		}
		return s
	}

	s.answered = s.at
	s.view.Silence, s.view.Stats, s.view.Unreached = "", stats, unreached
	s.view.Now = s.at
	for at := range stats {
		if at == 0 || stats[at].Now.Before(s.view.Now) {
			s.view.Now = stats[at].Now
		}
	}

	b.fill(l, s)
	l.rates(ctx, s)
	l.pauses(ctx, s)
	l.detail(ctx, s)
	return s
}

// rates reads how long the rates of late queues allow no start. If that can't be read, no rate is
// named as the cause of a lag.
func (l *looker) rates(ctx context.Context, s *snapshot) {
	s.view.Rates = nil
	queues := wrong.RatedQueues(s.view.Stats, s.view.Nodes)
	if len(queues) == 0 {
		return
	}

	ctx, end := context.WithTimeout(ctx, detailTime)
	defer end()
	if waits, err := l.inspector.RateWaits(ctx, s.view.Nodes, queues...); err == nil {
		s.view.Rates = waits
	}
}

// pauses searches the audit for the actions that paused the paused queues, if one of the queues is
// newly paused or the last search is a while ago. Parts that can't be read stay as they were.
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
	case s.at.Sub(s.pausesAt) < rest:
		return
	}

	ctx, end := context.WithTimeout(ctx, detailTime)
	defer end()
	pauses, err := wrong.PausesOf(s.view.Stats, l.inspector.Actions(ctx, inspect.ActionsOptions{}))

	if s.pausesAt = s.at; err == nil {
		s.view.Pauses = pauses
	}
}

// beside has the values that the dashboard reads from the store at the same time as the statistics.
// Statistics are the most work, and if a part of the store can't be reached, each call waits for
// that part by itself.
type beside struct {
	stop  context.CancelFunc
	asked sync.WaitGroup

	nodes       []inspect.Node
	nodesFailed error

	// checking is true if the store's servers are checked, which happens once the previous checks
	// have rested.
	checking     bool
	checks       []inspect.Check
	checksFailed error
	cost         time.Duration
}

// askBeside asks for servers and checks, for no longer than [inspect.ServersPatience].
func (l *looker) askBeside(ctx context.Context, s *snapshot) *beside {
	b := &beside{}
	ctx, b.stop = context.WithTimeout(ctx, inspect.ServersPatience)
	b.asked.Go(func() { b.nodes, b.nodesFailed = l.inspector.Nodes(ctx) })
	began := l.clock()
	b.checking = s.checked.IsZero() || !began.Before(s.checked.Add(service.RestAfter(s.cost, detailRest, maxDetail)))
	if b.checking {
		b.asked.Go(func() {
			b.checks, b.checksFailed = l.inspector.Checks(ctx)
			b.cost = l.clock().Sub(began)
		})
	}
	return b
}

// wait returns once all calls are answered or given up. They are given up at once if the
// statistics failed.
func (b *beside) wait(failed error) {
	if failed != nil {
		b.stop()
	}
	b.asked.Wait()
	b.stop()
}

// fill copies the answers.
func (b *beside) fill(l *looker, s *snapshot) {
	if s.view.NodesUnknown = b.nodesFailed != nil; b.nodesFailed == nil {
		s.view.Nodes = b.nodes
	}
	if !b.checking {
		return
	}

	s.checked, s.cost, s.checksFailed = l.clock(), b.cost, b.checksFailed
	if b.checksFailed != nil {
		return
	}

	s.view.Checks = b.checks
	for at := range b.checks {
		b.checks[at].Value = l.shown.ErrorText("", "", b.checks[at].Value)
	}
}
