package skein_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// tallying is an Observer as metrics have it: it adds numbers up.
type tallying struct {
	skein.NopObserver
	started, waited, ran, turns atomic.Int64
	ended                       [8]atomic.Int64
}

func (c *tallying) BatchStart(ctx context.Context, e skein.BatchEvent) context.Context {
	c.started.Add(int64(len(e.Claims)))
	for i := range e.Claims {
		c.waited.Add(int64(e.Wait(i)))
	}
	return ctx
}

func (c *tallying) BatchEnd(_ context.Context, e skein.BatchEvent) { c.ran.Add(int64(e.Took)) }

func (c *tallying) JobsEnded(e skein.EndEvent) {
	for i := range e.Jobs {
		c.ended[e.Jobs[i].End].Add(1)
	}
}

func (c *tallying) TurnEnd(skein.TurnEvent) { c.turns.Add(1) }

// BenchmarkObserver is BenchmarkMemory with an Observer that counts, and without.
func BenchmarkObserver(b *testing.B) {
	for name, observer := range map[string]func() skein.Observer{
		"without": func() skein.Observer { return nil },
		"with":    func() skein.Observer { return &tallying{} },
	} {
		b.Run(name, func(b *testing.B) {
			const backlog = 200_000
			store := memory.New(memory.Options{})
			for left := b.N; left > 0; left -= backlog {
				b.StopTimer()
				n := min(left, backlog)
				fill(b, store, n)
				b.StartTimer()
				serveObserved(b, store, n, observer())
			}
			reportRate(b)
		})
	}
}
