package engine

import (
	"math/rand/v2"
	"time"

	"github.com/skeinq/skein/core"
)

// settlements appends what the outcomes of a closed batch mean for the store.
func (b *Batch) settlements(to []core.Settlement) []core.Settlement {
	for i := range b.Claims {
		to = append(to, b.settlement(i, b.outcomes[i]))
	}
	return to
}

// settlement is what an outcome of job i means for the store. It does not panic.
func (b *Batch) settlement(i int, o core.Outcome) core.Settlement {
	c := &b.Claims[i]
	policy := b.shard.queue.Policy
	if policy.BacksOff(c, &o) {
		o.Delay, o.OwnDelay = b.retryDelay(i), true
	}
	return policy.Settlement(c, &o, 0)
}

// wait is how long job i waits before its retry. The queue's Backoff is asked once
// for a failure, also if the job is settled in a transaction and then again.
func (b *Batch) retryDelay(i int) time.Duration {
	b.mu.Lock()
	d, known := b.retryDelays[i]
	b.mu.Unlock()
	if known {
		return d
	}
	d = b.shard.backoff(&b.Claims[i])
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.retryDelays == nil {
		b.retryDelays = make(map[int]time.Duration)
	}
	b.retryDelays[i] = d
	return d
}

// backoff asks the queue's Backoff; one that panics means the default.
func (s *shard) backoff(c *core.Claim) (d time.Duration) {
	retry, jitter := c.RetryCount+1, s.node.jitter()
	failed := GuardGoroutine(func() error {
		d = s.queue.Policy.Wait(retry, jitter)
		return nil
	})
	if failed != nil {
		s.node.log.Error("skein: the queue's Backoff panicked; the default backoff is used",
			"queue", s.id.Queue, "shard", s.id.Index, "id", c.ID, "retry", retry, "error", failed)
		return core.DefaultBackoff(retry, jitter)
	}
	return d
}

// jitter draws a whole number within 0 … core.BackoffJitter-1, whatever the
// configured function does.
func (e *Engine) jitter() (draw int) {
	failed := GuardGoroutine(func() error {
		draw = e.cfg.Jitter()
		return nil
	})
	if failed != nil {
		e.log.Error("skein: Jitter panicked; a random one is used", "error", failed)
		return rand.IntN(core.BackoffJitter)
	}
	return max(0, min(draw, core.BackoffJitter-1))
}
