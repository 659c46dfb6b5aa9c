package storekit_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// received takes the wake-ups of a channel once all goroutines are idle, and reports whether it is
// still open.
func received(wakeups <-chan core.Shard) (shards []core.Shard, open bool) {
	for {
		synctest.Wait()
		select {
		case shard, open := <-wakeups:
			if !open {
				return shards, false
			}
			shards = append(shards, shard)
		default:
			return shards, true
		}
	}
}

func TestASlowReaderReceivesEachShardOnceInOrder(t *testing.T) {
	s := core.Shards("orders", 4)
	other := core.Shard{Queue: "mails", Index: 1}
	tests := []struct {
		name  string
		asked []core.Shard
		wake  func(*storekit.Subscriber)
		want  []core.Shard
	}{
		{"nothing happened", s, func(*storekit.Subscriber) {}, nil},
		{
			"in the order they came",
			s,
			func(sub *storekit.Subscriber) { sub.Wake(s[2]); sub.Wake(s[0], s[1]) },
			[]core.Shard{s[2], s[0], s[1]},
		},
		{
			"not again while pending",
			s,
			func(sub *storekit.Subscriber) { sub.Wake(s[2], s[1], s[2]); sub.Wake(s[1], s[0]) },
			[]core.Shard{s[2], s[1], s[0]},
		},
		{"only those asked for", s[1:2], func(sub *storekit.Subscriber) { sub.Wake(s[0], s[1], s[2], other) }, s[1:2]},
		{"none of those asked for", s[1:2], func(sub *storekit.Subscriber) { sub.Wake(other) }, nil},
		{"asked for twice", []core.Shard{s[1], s[1]}, func(sub *storekit.Subscriber) { sub.Wake(s[1]) }, s[1:2]},
		{"asked for nothing", nil, func(sub *storekit.Subscriber) { sub.Wake(s...); sub.WakeAll() }, nil},
		{
			"all",
			s,
			func(sub *storekit.Subscriber) { sub.Wake(s[3]); sub.WakeAll() },
			[]core.Shard{s[3], s[0], s[1], s[2]},
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sub := storekit.NewSubscriber(tt.asked)
				tt.wake(sub) // nobody reads yet

				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				got, open := received(sub.Channel(ctx, nil))
				if diff := cmp.Diff(tt.want, got); diff != "" || !open {
					t.Errorf("open: %t, received (-want +got):\n%s", open, diff)
				}
			})
		})
	}
}

// A shard that the reader has received is pending again when it is woken again, round after round.
func TestAShardWakesAgainOnceItWasReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.Shards("orders", 3)
		sub := storekit.NewSubscriber(s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wakeups := sub.Channel(ctx, nil)
		for round := range 7 {
			want := []core.Shard{s[round%3], s[(round+1)%3]}
			sub.Wake(want...)
			if got, _ := received(wakeups); !slices.Equal(got, want) {
				t.Errorf("round %d: received %v, want %v", round, got, want)
			}
		}
	})
}

func TestTheChannelClosesAfterTheCleanup(t *testing.T) {
	s := core.Shards("orders", 3)
	ends := map[string]func(sub *storekit.Subscriber, cancel func()){
		"its context ends":            func(_ *storekit.Subscriber, cancel func()) { cancel() },
		"the subscription ends":       func(sub *storekit.Subscriber, _ func()) { sub.End() },
		"the subscription ends twice": func(sub *storekit.Subscriber, _ func()) { sub.End(); sub.End() },
		"both end":                    func(sub *storekit.Subscriber, cancel func()) { sub.End(); cancel() },
	}

	for name, end := range ends {
		for pending, wake := range map[string][]core.Shard{"idle": nil, "pending": s} {
			t.Run(name+"/"+pending, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()

					sub := storekit.NewSubscriber(s)
					var cleaned time.Time
					wakeups := sub.Channel(ctx, func() {
						time.Sleep(time.Second)
						cleaned = time.Now()
					})

					sub.Wake(wake...)
					synctest.Wait()
					end(sub, cancel)
					sub.Wake(s...) // does nothing, and blocks nobody

					if shard, open := <-wakeups; open {
						t.Errorf("received %v after the end", shard)
					}
					if cleaned.IsZero() {
						t.Error("the channel was closed before the cleanup returned")
					}
				})
			})
		}
	}
}

func TestANilSubscriberNeverWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sub *storekit.Subscriber
		ctx, cancel := context.WithCancel(t.Context())
		wakeups := sub.Channel(ctx, nil)

		sub.Wake(core.Shard{Queue: "orders"})
		sub.WakeAll()
		sub.End()
		if got, open := received(wakeups); len(got) != 0 || !open {
			t.Errorf("received %v, open: %t", got, open)
		}

		cancel()
		if _, open := received(wakeups); open {
			t.Error("the channel is open after its context ended")
		}
	})
}

// Many wakers and one reader: every shard is received after the last time it was
// woken.
func TestWakersRaceWithTheReader(t *testing.T) {
	s := core.Shards("orders", 8)
	sub := storekit.NewSubscriber(s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wakeups := sub.Channel(ctx, nil)

	var wakers sync.WaitGroup
	for range 4 {
		wakers.Go(func() {
			for i := range 1000 {
				sub.Wake(s[i%len(s)])
			}
		})
	}

	go func() {
		wakers.Wait()
		sub.WakeAll()
		sub.Wake(s[0])
	}()

	missing := make(map[core.Shard]bool)
	for _, shard := range s {
		missing[shard] = true
	}
	for shard := range wakeups {
		if delete(missing, shard); len(missing) == 0 {
			sub.End()
		}
	}

	if len(missing) > 0 {
		t.Errorf("never received: %v", missing)
	}
}

func TestWakeDoesNotAllocate(t *testing.T) {
	s := core.Shards("orders", 8)
	sub := storekit.NewSubscriber(s)
	if n := testing.AllocsPerRun(100, func() { sub.Wake(s[3]); sub.WakeAll() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
