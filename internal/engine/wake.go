package engine

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// lookAgain lets the poll, and the shards that wait for another node, see what was
// missed while nobody listened.
func (e *Engine) recheckAll() {
	signal(e.pollNow)
	for _, s := range e.shards {
		signal(s.released)
	}
}

// listen hands the store's wake-ups to the shards.
func (e *Engine) listen(ctx context.Context, n ports.Notifier) {
	ids := make([]core.Shard, len(e.shards))
	byID := make(map[core.Shard]*shard, len(e.shards))
	for i, s := range e.shards {
		ids[i], byID[s.id] = s.id, s
	}
	p := e.newLoopStatus("listen for wake-ups")
	var retry backoff
	for ctx.Err() == nil {
		began := time.Now()
		wakeups, err := n.Wakeups(ctx, ids)
		switch {
		case err == nil:
			p.ok()
			e.recheckAll()
			for id := range wakeups {
				if s := byID[id]; s != nil {
					s.onWakeup()
				}
			}
		case ctx.Err() == nil:
			p.failed(err)
		}
		if time.Since(began) > longestRetry { // it has listened for a while
			retry.reset()
		}
		pause(retry.next(), ctx.Done())
	}
}
