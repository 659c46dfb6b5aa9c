package engine

import (
	"context"
	"sync"
	"time"
)

// Bounds of the calls of Config.Buried.
const (
	// hookWorkers is how many run at once.
	hookWorkers = 4
	// maxWaitingHooks is how many burials wait for a call.
	maxWaitingHooks = 1000
)

// hooks calls Config.Buried, so that nothing else waits for it.
type hooks struct {
	node *node
	// ctx is the context of the calls. It ends with the shutdown timeout.
	ctx context.Context
	end context.CancelCauseFunc
	// unwatch ends the watch over Run's context.
	unwatch func() bool
	// maxWorkers is how many calls run at once.
	maxWorkers int

	running sync.WaitGroup
	mu      sync.Mutex
	workers int
	waiting []Buried
	missed  int
}

// start makes the context of the calls. It ends when runCtx has ended and the shutdown timeout is
// over.
func (h *hooks) start(node *node, runCtx context.Context) {
	h.node, h.maxWorkers = node, hookWorkers
	h.ctx, h.end = context.WithCancelCause(node.handlerCtx)
	h.unwatch = context.AfterFunc(runCtx, func() {
		time.AfterFunc(node.cfg.ShutdownTimeout, func() { h.end(ErrShutdown) })
	})
}

// add queues burials for the hook. Burials that find no room are logged instead, so nothing waits
// for a hook and no burial is lost without a trace.
func (h *hooks) add(buried []Buried) {
	if h.node.cfg.Buried == nil || len(buried) == 0 {
		return
	}
	h.mu.Lock()
	room := min(len(buried), maxWaitingHooks-len(h.waiting))
	h.waiting = append(h.waiting, buried[:room]...)
	for range min(room, h.maxWorkers-h.workers) {
		h.workers++
		h.running.Go(h.work)
	}
	h.mu.Unlock()
	for i := range buried[room:] {
		h.logMissed(&buried[room+i], "too many calls wait")
	}
}

// work calls the hook until no burial waits.
func (h *hooks) work() {
	for b, ok := h.next(); ok; b, ok = h.next() {
		h.call(&b)
	}
}

// next removes the first waiting burial. If none waits, ok is false and the worker ends.
func (h *hooks) next() (Buried, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		h.workers--
		h.waiting = nil
		return Buried{}, false
	}
	b := h.waiting[0]
	h.waiting = h.waiting[1:]
	return b, true
}

// call calls the hook once.
func (h *hooks) call(b *Buried) {
	if h.ctx.Err() != nil {
		h.logMissed(b, "the server's shutdown timeout has passed")
		return
	}
	if err := GuardGoroutine(func() error { return h.node.cfg.Buried(h.ctx, *b) }); err != nil && h.node.jobLog.failedHooks.Pass(time.Now(), b.Shard.Queue) {
		h.node.log.Error("OnBuried failed", keyQueue, b.Shard.Queue, keyShard, b.Shard.String(), keyID, b.ID,
			"by", b.Reason.String(), keyError, err)
	}
}

// logMissed logs a burial that the hook is not called for.
func (h *hooks) logMissed(b *Buried, why string) {
	h.mu.Lock()
	h.missed++
	missed := h.missed
	h.mu.Unlock()
	if !h.node.jobLog.missedHooks.Pass(time.Now(), b.Shard.Queue) {
		return
	}
	h.node.log.Error("OnBuried was not called for a burial", keyQueue, b.Shard.Queue, keyShard, b.Shard.String(),
		keyID, b.ID, "by", b.Reason.String(), keyPayloads, len(b.Payloads), "why", why, "missed", missed)
}

// wait returns once no call runs or waits.
func (h *hooks) wait() { h.running.Wait() }

// close ends the context of the calls.
func (h *hooks) close() {
	h.unwatch()
	h.end(context.Canceled)
}
