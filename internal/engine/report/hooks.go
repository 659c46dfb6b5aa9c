package report

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
)

// BuryReason is why payloads went to the morgue.
type BuryReason uint8

const (
	// Exhausted means that the retries of the payload's job were used up.
	Exhausted BuryReason = iota + 1
	// ByHandler means that a handler has buried the payload.
	ByHandler
	// Undecodable means that the codec refuses the payload.
	Undecodable
	// Recovered means that the payload's job has lost its process too often.
	Recovered
)

// String returns the reason in a word, as it is logged.
func (r BuryReason) String() string {
	if names := [...]string{"", "retries", "handler", "codec", "recovery"}; 0 < r && int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Buried has the payloads of one job that went to the morgue at once, for one reason.
type Buried struct {
	Shard    core.Shard
	ID       string
	Payloads []core.Payload
	Reason   BuryReason
	// Error is the text that is stored with the payloads, and Group the group of their dead letters.
	Error string
	Group string
}

// Bounds of the calls of Config.Buried.
const (
	// hookWorkers is how many run at once by default.
	hookWorkers = 4
	// maxWaitingHooks is how many burials wait for a call.
	maxWaitingHooks = 1000
)

// Hooks calls the hook of burials, so that nothing else waits for it.
type Hooks struct {
	// Hook is called for each burial. If it is nil, nothing is called.
	Hook func(ctx context.Context, b Buried) error
	// Jobs logs the calls that fail or are not made.
	Jobs *Jobs
	// MaxWorkers is how many calls run at once. 0 means hookWorkers.
	MaxWorkers int

	// ctx is the context of the calls. It ends with the shutdown timeout.
	ctx context.Context
	end context.CancelCauseFunc
	// unwatch ends the watch over Run's context.
	unwatch func() bool

	running sync.WaitGroup
	mu      sync.Mutex
	workers int
	waiting []Buried
	missed  int
}

// Start makes the context of the calls from parent. It ends with the cause over, when runCtx has
// ended and the shutdown timeout has passed since.
func (h *Hooks) Start(parent, runCtx context.Context, timeout time.Duration, over error) {
	h.ctx, h.end = context.WithCancelCause(parent)
	h.unwatch = context.AfterFunc(runCtx, func() {
		time.AfterFunc(timeout, func() { h.end(over) })
	})
}

// Add queues burials for the hook. Burials that find no room are logged instead, so nothing waits
// for a hook and no burial is lost without a trace.
func (h *Hooks) Add(buried []Buried) {
	if h.Hook == nil || len(buried) == 0 {
		return
	}

	h.mu.Lock()
	room := min(len(buried), maxWaitingHooks-len(h.waiting))
	h.waiting = append(h.waiting, buried[:room]...)
	for range min(room, cmp.Or(h.MaxWorkers, hookWorkers)-h.workers) {
		h.workers++
		h.running.Go(h.work)
	}
	h.mu.Unlock()

	for i := range buried[room:] {
		h.logMissed(&buried[room+i], "too many calls wait")
	}
}

// work calls the hook until no burial waits.
func (h *Hooks) work() {
	for b, ok := h.next(); ok; b, ok = h.next() {
		h.call(&b)
	}
}

// next removes the first waiting burial. If none waits, ok is false and the worker ends.
func (h *Hooks) next() (Buried, bool) {
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
func (h *Hooks) call(b *Buried) {
	if h.ctx.Err() != nil {
		h.logMissed(b, "the server's shutdown timeout has passed")
		return
	}
	if err := guard.Goroutine(func() error { return h.Hook(h.ctx, *b) }); err != nil &&
		h.Jobs.failedHooks.Pass(time.Now(), b.Shard.Queue) {
		h.Jobs.log.Error("OnBuried failed", keyQueue, b.Shard.Queue, keyShard, b.Shard.String(), keyID, b.ID,
			"by", b.Reason.String(), keyError, err)
	}
}

// logMissed logs a burial that the hook is not called for.
func (h *Hooks) logMissed(b *Buried, why string) {
	h.mu.Lock()
	h.missed++
	missed := h.missed
	h.mu.Unlock()
	if !h.Jobs.missedHooks.Pass(time.Now(), b.Shard.Queue) {
		return
	}
	h.Jobs.log.Error("OnBuried was not called for a burial", keyQueue, b.Shard.Queue, keyShard, b.Shard.String(),
		keyID, b.ID, "by", b.Reason.String(), keyPayloads, len(b.Payloads), "why", why, "missed", missed)
}

// Wait returns once no call runs or waits.
func (h *Hooks) Wait() { h.running.Wait() }

// Close ends the context of the calls.
func (h *Hooks) Close() {
	h.unwatch()
	h.end(context.Canceled)
}
