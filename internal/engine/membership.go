package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/membership"
	"github.com/skeinq/skein/ports"
)

// announceInterval is how often a node announces itself. It is short enough for an announcement to
// be lost before the previous one expires.
func (n *node) announceInterval() time.Duration { return n.cfg.LeaseTTL / 3 }

// announcePause is how soon after an announcement a change of the list causes the next one, so
// that many changes at once cost one announcement.
const announcePause = 10 * time.Millisecond

// shareShards announces the node and shares the shards, until stop is closed.
func (e *Engine) shareShards(stop <-chan struct{}) {
	members := &membership.Members{
		Owner: e.cfg.Owner, Interval: e.announceInterval(), Splitter: e.cfg.Splitter, Logger: e.log, Observer: e.observer,
	}
	status, retry := e.outages.Loop("announce", core.Shard{}), backoff{longest: e.announceInterval()}
	for ok := true; ok; ok = ok && pause(announcePause, stop) {
		answer, err := e.announce()
		status.Called(err)
		wait := e.share(members, answer)
		if err != nil {
			wait = min(wait, retry.next())
		} else {
			retry.reset()
		}
		timer := time.NewTimer(max(wait, 1))
		ok = await(timer.C, e.nodesChanged, stop)
		timer.Stop()
	}
}

// announce makes one call. It returns nil with an error.
func (e *Engine) announce() (*ports.AnnounceReply, error) {
	ctx, cancel := e.callContext()
	defer cancel()
	reply, err := e.store.Announce(ctx, ports.AnnounceRequest{Node: e.self(), TTL: e.cfg.LeaseTTL})
	if err != nil {
		return nil, err
	}
	e.nodes.Store(&reply.Nodes)
	return &reply, nil
}

// share assigns the shards to this node or to another. It returns how long to wait until the next
// announcement.
func (e *Engine) share(members *membership.Members, answer *ports.AnnounceReply) time.Duration {
	now, served := time.Now(), e.served.Load()
	self := membership.Self{SplitNode: e.splitNode(served), All: served.all, Stopping: e.stopping()}
	byID := make(map[core.Shard]*shard, len(served.shards))
	for _, s := range served.shards {
		self.Shards = append(self.Shards, membership.Shard{Shard: s.id, Assigned: s.isAssigned(), Removed: s.queue.removed.Load()})
		byID[s.id] = s
	}
	change, wait := members.Share(&self, answer, now)
	for _, id := range change.Gained {
		byID[id].assign(true, now)
	}
	for _, id := range change.Lost {
		byID[id].assign(false, now)
	}
	members.Assigned(change, &self)
	return wait
}
