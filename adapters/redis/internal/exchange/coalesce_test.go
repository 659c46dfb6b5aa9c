package exchange

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
	open chan struct{}
	mu   sync.Mutex
	// calls has the number of commands of each exchange.
	calls []int
}

func (*heldExchanges) DialHook(next goredis.DialHook) goredis.DialHook { return next }

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
		l := New(client, 0, 0)

		push := func() {
			if o := l.RunCoalesced(t.Context(), Call{Command: "ping"}); o.Err != nil {
				t.Error(o.Err)
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
	var p coalescer
	p.add(&waitingCall{}) // makes the sender that takes
	p.take()
	p.waiting = make([]*waitingCall, 100)
	for i, want := range []int{coalesceCalls, 100 - coalesceCalls, 0} {
		if got := len(p.take()); got != want {
			t.Errorf("exchange %d has %d calls, want %d", i, got, want)
		}
	}
}
