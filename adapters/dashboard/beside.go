package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// beside is what the dashboard asks the store for while its statistics are read. Statistics are
// the most work, and if a part of the store is away each call waits for that part by itself.
type beside struct {
	stop  context.CancelFunc
	asked sync.WaitGroup

	nodes       []inspect.Node
	nodesFailed error

	// checking is whether the servers are checked, which they are once the previous checks have
	// rested.
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
