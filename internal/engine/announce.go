package engine

import (
	"context"
	"time"

	"github.com/skeinq/skein/ports"
)

// announce tells the store that the node runs, until stop is closed.
func (e *Engine) announce(stop <-chan struct{}) {
	node := ports.Node{
		Owner: e.cfg.Owner, Name: e.cfg.Node, Host: e.cfg.Host, PID: e.cfg.PID, Lanes: e.cfg.Lanes,
	}
	for _, q := range e.cfg.Queues {
		node.Queues = append(node.Queues, q.Name)
	}
	p := e.newLoopStatus("announce")
	every(e.cfg.LeaseTTL/3, stop, func() {
		ctx, cancel := context.WithTimeout(e.storeCtx, e.cfg.LeaseTTL/3)
		defer cancel()
		reply, err := e.store.Announce(ctx, ports.AnnounceRequest{Node: node, TTL: e.cfg.LeaseTTL})
		if err != nil {
			p.failed(err)
			return
		}
		p.ok()
		e.nodes.Store(&reply.Nodes)
	})
}

// retire takes the announcement back; if that fails, it runs out by itself.
func (e *Engine) retire() {
	ctx, cancel := context.WithTimeout(e.handlerCtx, min(e.cfg.LeaseTTL/3, 2*time.Second))
	defer cancel()
	if err := e.store.Retire(ctx, e.cfg.Owner); err != nil {
		e.log.Debug("skein: retire failed", "error", err)
	}
}
