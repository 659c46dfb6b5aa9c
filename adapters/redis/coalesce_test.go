package redis

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// heldExchanges is the server of a client that answers nothing until it is opened.
type heldExchanges struct {
	answers
	open chan struct{}
	mu   sync.Mutex
	// calls has the number of commands of each exchange.
	calls []int
}

func (h *heldExchanges) take(cmds ...goredis.Cmder) error {
	h.mu.Lock()
	h.calls = append(h.calls, len(cmds))
	h.mu.Unlock()
	<-h.open
	return nil
}

func (h *heldExchanges) ProcessHook(goredis.ProcessHook) goredis.ProcessHook {
	return func(_ context.Context, cmd goredis.Cmder) error { return h.take(cmd) }
}

func (h *heldExchanges) ProcessPipelineHook(goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(_ context.Context, cmds []goredis.Cmder) error { return h.take(cmds...) }
}

// Pushes that come while as many exchanges are under way as may be go together in the next one.
func TestPushesShareAnExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := goredis.NewClient(&goredis.Options{Addr: "10.0.0.1:1"})
		defer client.Close()
		server := &heldExchanges{open: make(chan struct{})}
		client.AddHook(server)
		store := New(client, Options{})
		store.server.done.Store(true)
		push := func() {
			if o := store.runCoalesced(t.Context(), call{command: "ping"}); o.err != nil {
				t.Error(o.err)
			}
		}
		var pushing sync.WaitGroup
		for range coalesceSenders {
			pushing.Go(push)
			synctest.Wait() // it is under way, alone
		}
		for range coalesceCalls {
			pushing.Go(push)
		}
		synctest.Wait() // they all wait
		close(server.open)
		pushing.Wait()
		time.Sleep(2 * idleWorker) // in which the workers end
		if want := append(slices.Repeat([]int{1}, coalesceSenders), coalesceCalls); !slices.Equal(server.calls, want) {
			t.Errorf("the exchanges have %v calls, want %v", server.calls, want)
		}
	})
}

func TestAnExchangeOfPushesIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sizes []int
		want  []int // how many calls each exchange has
	}{
		{"small ones", make([]int, 100), []int{64, 36}},
		{"as large as may be", repeat(coalesceCallBytes, 40), []int{16, 16, 8}},
		{"one that is too large by itself", []int{2 * coalesceBytes, 1, 1}, []int{1, 2}},
		{"up to the last byte", []int{coalesceBytes - 1, 1, 1}, []int{2, 1}},
	} {
		var p coalescer
		p.add(&waitingCall{}) // makes the sender that takes
		p.take()
		for _, size := range tt.sizes {
			p.waiting = append(p.waiting, &waitingCall{call: call{size: size}})
		}
		for i, want := range append(tt.want, 0) {
			if got := len(p.take()); got != want {
				t.Errorf("%s: exchange %d has %d calls, want %d", tt.name, i, got, want)
			}
		}
	}
}

func repeat(size, n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}
