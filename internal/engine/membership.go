package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// membership is how the node shares its queues with others. It announces itself, takes the list of
// nodes from the answer, and works the shards that the splitter assigns to it among those nodes.
// Every node computes the same assignment; while their lists differ, leases keep them apart. A
// shard that is newly this node's is acquired at once. A shard that goes to another node is given
// up after an announce interval in which the list has not changed, or at once if this node drains.
//
// Only its loop uses it.
type membership struct {
	engine *Engine
	status *report.Loop
	retry  backoff
	// known are the nodes of the last answer. sharing are those that share the shards, in order of
	// owner; this node is included unless it drains. changedAt is when sharing last changed.
	known     []ports.Node
	sharing   []core.SplitNode
	changedAt time.Time
	// mine are the shards that the splitter assigns to this node.
	mine     map[core.Shard]bool
	draining bool
	// saidDraining is set once it is logged that the node drains.
	saidDraining bool
	// lookAt is when to announce again before the interval is over, because another node's
	// announcement ends. It is zero if there is no such time.
	lookAt time.Time
}

func newMembership(e *Engine) *membership {
	return &membership{engine: e, status: e.outages.Loop("announce", core.Shard{}), retry: backoff{longest: e.announceInterval()}}
}

// announceInterval is how often a node announces itself. It is short enough for an announcement to
// be lost before the previous one expires.
func (n *node) announceInterval() time.Duration { return n.cfg.LeaseTTL / 3 }

// announcePause is how soon after an announcement a change of the list causes the next one, so
// that many changes at once cost one announcement.
const announcePause = 10 * time.Millisecond

// run announces the node and shares the shards, until stop is closed.
func (m *membership) run(stop <-chan struct{}) {
	for {
		timer := time.NewTimer(max(m.step(), 1))
		ok := await(timer.C, m.engine.nodesChanged, stop)
		timer.Stop()
		if !ok || !pause(announcePause, stop) {
			return
		}
	}
}

// step announces the node once and shares the shards by the answer. It returns when to do so
// again.
func (m *membership) step() time.Duration {
	reply, err := m.announce()
	now := time.Now()
	m.status.Called(err)
	if err == nil {
		m.retry.reset()
		m.takeList(reply, now)
	}
	if m.sharing == nil { // a node always counts itself
		m.share(nil, now)
	}
	next := m.engine.announceInterval()
	if givesUp := m.assign(now); !givesUp.IsZero() {
		next = min(next, givesUp.Sub(now))
	}
	if err != nil {
		next = min(next, m.retry.next())
	} else if !m.lookAt.IsZero() {
		next = min(next, m.lookAt.Sub(now))
	}
	return next
}

// announce makes one call.
func (m *membership) announce() (ports.AnnounceReply, error) {
	e := m.engine
	ctx, cancel := e.callContext()
	defer cancel()
	return e.store.Announce(ctx, ports.AnnounceRequest{Node: e.self(), TTL: e.cfg.LeaseTTL})
}

// takeList takes the list of nodes.
func (m *membership) takeList(reply ports.AnnounceReply, now time.Time) {
	e := m.engine
	e.nodes.Store(&reply.Nodes)
	m.draining = false
	m.lookAt = time.Time{}
	var sharing []core.SplitNode
	for _, n := range reply.Nodes {
		if n.Owner == e.cfg.Owner {
			m.draining = n.Draining
			continue
		}
		if ends := now.Add(n.ExpiresAt.Sub(reply.Now)); m.lookAt.IsZero() || ends.Before(m.lookAt) {
			m.lookAt = ends
		}
		if !n.Draining {
			sharing = append(sharing, core.SplitNode{ID: n.Owner, Lanes: n.Lanes, Queues: n.Queues})
		}
	}
	m.report(reply.Nodes)
	m.known = reply.Nodes
	m.share(sharing, now)
}

// share takes the other nodes that share the shards, and splits the shards anew if those nodes
// have changed.
func (m *membership) share(sharing []core.SplitNode, now time.Time) {
	e := m.engine
	if !m.draining {
		sharing = append(sharing, e.splitNode(e.served.Load()))
		slices.SortFunc(sharing, func(a, b core.SplitNode) int { return cmp.Compare(a.ID, b.ID) })
	}
	if slices.EqualFunc(m.sharing, sharing, sameSplitNode) {
		return
	}
	m.sharing, m.changedAt = sharing, now
	m.split()
	m.reportShare()
}

func sameSplitNode(a, b core.SplitNode) bool {
	return a.ID == b.ID && a.Lanes == b.Lanes && slices.Equal(a.Queues, b.Queues)
}

// split calls the splitter for this node's shards. If that fails, they stay as they are.
func (m *membership) split() {
	e := m.engine
	mine := make(map[core.Shard]bool)
	if !m.draining {
		split, err := e.split(e.served.Load(), m.sharing)
		if err != nil {
			e.log.Error("the splitter failed; this server keeps the shards that it has", "nodes", len(m.sharing), "error", err)
			return
		}
		for _, ids := range append(split.Lanes, split.Shared) {
			for _, id := range ids {
				mine[id] = true
			}
		}
	}
	m.mine = mine
}

// assign assigns the shards to this node or to another. It returns when the next shard has to be
// given up, or zero.
func (m *membership) assign(now time.Time) (givesUp time.Time) {
	e := m.engine
	event := ports.AssignEvent{Nodes: len(m.sharing)}
	settled := m.changedAt.Add(e.announceInterval())
	for _, s := range e.shards() {
		switch mine := m.mine[s.id]; {
		case mine == s.isAssigned():
		case mine:
			s.assign(true, now)
			event.Gained = append(event.Gained, s.id)
		case m.draining || s.queue.removed.Load() || !now.Before(settled):
			s.assign(false, now)
			event.Lost = append(event.Lost, s.id)
		default:
			givesUp = settled
		}
	}
	m.reportAssigned(event)
	return givesUp
}
