package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/skeinq/skein/inspect"
)

// beside is what the store is asked for while its statistics are read: they are the most work, and where a part of the store is away each
// call waits for that part by itself.
type beside struct {
	stop  context.CancelFunc
	asked sync.WaitGroup

	nodes       []inspect.Node
	nodesFailed error

	// checking is whether the servers are looked at, which they are once the checks of before have rested.
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
	b.checking = s.checked.IsZero() || !began.Before(s.checked.Add(restAfter(s.cost, detailRest, maxDetail)))
	if b.checking {
		b.asked.Go(func() {
			b.checks, b.checksFailed = l.inspector.Checks(ctx)
			b.cost = l.clock().Sub(began)
		})
	}
	return b
}

// wait returns once all is answered, or given up, which it is at once if the statistics failed.
func (b *beside) wait(failed error) {
	if failed != nil {
		b.stop()
	}
	b.asked.Wait()
	b.stop()
}

// fill takes over what was answered.
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
		b.checks[at].Value = l.redact(b.checks[at].Value)
	}
}
