package ticks_test

import (
	"bytes"
	"context"

	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/internal/engine/ticks"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// bench is a store with a queue of two shards, and a firer of the shards in held.
type bench struct {
	*testing.T
	store *memory.Store
	// around intercepts the firer's calls.
	around storekit.Interceptor

	mu    sync.Mutex
	held  []ticks.Shard
	calls map[string]int
	log   bytes.Buffer
	event ports.TickEvent
	// events and pushed count the calls of TicksFired and Pushed.
	events, pushed int

	acquired chan struct{}
	stop     chan struct{}
	ended    chan struct{}
}

// TicksFired sums up events.
func (b *bench) TicksFired(e ports.TickEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events++
	b.event.Fired += e.Fired
	b.event.Missed += e.Missed
	b.event.Skipped += e.Skipped
	b.event.Broken += e.Broken
	b.event.Late = append(b.event.Late, e.Late...)
}

type observer struct {
	ports.NopObserver
	*bench
}

func (o observer) TicksFired(e ports.TickEvent) { o.bench.TicksFired(e) }

// onBench runs a test in virtual time.
func onBench(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{
			T:        t,
			store:    memory.New(memory.Options{}),
			calls:    map[string]int{},
			acquired: make(chan struct{}, 1),
			stop:     make(chan struct{}),
			ended:    make(chan struct{}),
		}
		if _, err := b.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 2}); err != nil {
			t.Fatal(err)
		}
		b.hold(0, 1)
		test(b)
	})
}

// hold sets the shards that the server holds.
func (b *bench) hold(shards ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = nil
	for _, i := range shards {
		b.held = append(b.held, ticks.Shard{ID: core.Shard{Queue: "orders", Index: i}, Shards: 2, Generation: 1})
	}
}

// run starts the firer. It ends with the test at the latest.
func (b *bench) run() {
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	ctx, cancel := context.WithCancel(context.Background())
	call := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 10*time.Second) }
	store := storekit.Intercept(b.store,
		func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			b.mu.Lock()
			b.calls[c.Method]++
			b.mu.Unlock()
			if b.around != nil {
				return b.around(ctx, c, next)
			}
			return next(ctx)
		})
	firer := ticks.New(ticks.Config{
		Store: store,
		Held: func() []ticks.Shard {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.held
		},
		Acquired:     b.acquired,
		PollInterval: time.Second,
		Call:         call,
		Look:         call,
		Start:        func(group *sync.WaitGroup, f func()) { group.Go(f) },
		Log:          log,
		Observer:     observer{bench: b},
		Outages:      report.NewOutages(ctx, log, ports.NopObserver{}),
		Pushed: func(core.Shard) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.pushed++
		},
	})
	go func() {
		defer close(b.ended)
		firer.Run(b.stop)
	}()
	b.Cleanup(func() { b.end(cancel) })
}

// end stops the firer as an engine does.
func (b *bench) end(cancel context.CancelFunc) {
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	cancel()
	<-b.ended
}

func (b *bench) count(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[method]
}

// schedule stores n schedules of an interval in a shard.
func (b *bench) schedule(shard, n int, every time.Duration) {
	b.Helper()
	text, err := core.IntervalSpec(every, 0)
	if err != nil {
		b.Fatal(err)
	}
	spec, err := core.ParseSpec(text, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; n > 0; i++ {
		id := fmt.Sprint("id-", i)
		if core.ShardOf(id, 2) != shard {
			continue
		}
		n--
		d := core.Declaration{ScheduleKey: core.ScheduleKey{ID: id, Name: "x"}, Recurrence: core.Recurrence{Spec: text}}
		s, _ := d.Apply(core.Schedule{}, spec, "test", core.InstantOf(time.Now()))
		reply, err := b.store.ChangeSchedules(b.Context(), ports.ChangeSchedulesRequest{
			Shard: core.Shard{Queue: "orders", Index: shard}, Shards: 2, Generation: 1,
			Changes: []ports.ScheduleChange{{ScheduleKey: s.ScheduleKey, Schedule: &s}},
		})
		if err != nil || reply.Results[0] != ports.ScheduleChanged {
			b.Fatal(reply.Results, err)
		}
	}
}

// A shard that can't be fired is tried again after ever longer waits of up to five seconds.
// Meanwhile other shards are looked at and fired.
func TestAFailingShardIsTriedLessOften(t *testing.T) {
	onBench(t, func(b *bench) {
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			if r, ok := c.Request.(*ports.ChangeSchedulesRequest); ok && r.Shard.Index == 0 {
				return ports.ErrFull
			}
			return next(ctx)
		}
		b.schedule(0, 1, 10*time.Second)
		b.schedule(1, 1, 10*time.Second)
		b.run()
		time.Sleep(110 * time.Second)
		synctest.Wait()
		// 10 of the healthy shard; in 100 s some 7 within the first 10 s, and 18 after that.
		if n := b.count("ChangeSchedules"); n < 25 || n > 40 {
			b.Errorf("%d changes in 100 s, want 25 to 40", n)
		}
		if b.event.Fired != 11 && b.event.Fired != 10 {
			b.Errorf("%d ticks of the healthy shard were fired, want 10 or 11", b.event.Fired)
		}
		if n := strings.Count(b.log.String(), "the store fails"); n != 2 {
			b.Errorf("%d lines, want one a minute:\n%s", n, &b.log)
		}
		if log := b.log.String(); !strings.Contains(log, ports.ErrFull.Error()) {
			b.Errorf("the log does not name the store's error:\n%s", log)
		}
	})
}

// The outage of a shard that is no longer held is over for this server. That is no answer of the
// store, and is not logged as one.
func TestAFailingShardThatIsGivenUpIsForgotten(t *testing.T) {
	onBench(t, func(b *bench) {
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			if c.Method == "ChangeSchedules" {
				return ports.ErrFull
			}
			return next(ctx)
		}
		b.schedule(0, 1, 10*time.Second)
		b.run()
		time.Sleep(15 * time.Second)
		b.hold(1)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		before := b.count("ChangeSchedules")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.count("ChangeSchedules"); n != before {
			b.Errorf("%d changes of a shard that is not held", n-before)
		}
		if strings.Contains(b.log.String(), "answers again") {
			b.Errorf("the log reports an answer:\n%s", &b.log)
		}
		b.hold(0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := strings.Count(b.log.String(), "the store fails"); n != 2 {
			b.Errorf("%d lines, want a second one once the shard is held again:\n%s", n, &b.log)
		}
	})
}

// One goroutine fires a shard at a time, whatever the looks find meanwhile.
func TestAShardIsFiredOnceAtATime(t *testing.T) {
	onBench(t, func(b *bench) {
		running, most := 0, 0
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			if c.Method != "ChangeSchedules" {
				return next(ctx)
			}
			b.mu.Lock()
			running++
			most = max(most, running)
			b.mu.Unlock()
			time.Sleep(3 * time.Second)
			b.mu.Lock()
			running--
			b.mu.Unlock()
			return next(ctx)
		}
		b.schedule(0, 5, time.Second)
		b.run()
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != 1 {
			b.Errorf("%d changes of one shard at once", most)
		}
	})
}

// A lease that was acquired is looked at at once, not with the next poll.
func TestANewShardIsLookedAtAtOnce(t *testing.T) {
	onBench(t, func(b *bench) {
		b.schedule(0, 1, time.Second)
		time.Sleep(10 * time.Second)
		b.hold()
		b.run()
		time.Sleep(100 * time.Millisecond)
		if n := b.count("Ticks"); n != 0 {
			b.Errorf("%d looks at no shard", n)
		}
		b.hold(0)
		b.acquired <- struct{}{}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if b.event.Fired != 1 {
			b.Errorf("%d ticks were fired, want 1", b.event.Fired)
		}
	})
}

// More schedules than a call may change are fired in several calls, also if the store handles only
// one change of each.
func TestABacklogIsFiredInSeveralCalls(t *testing.T) {
	for _, most := range []int{1, ports.MaxScheduleChanges} {
		onBench(t, func(b *bench) {
			b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
				if r, ok := c.Request.(*ports.ChangeSchedulesRequest); ok {
					r.Changes = r.Changes[:min(most, len(r.Changes))]
				}
				return next(ctx)
			}
			b.schedule(0, 250, time.Hour)
			b.run()
			time.Sleep(time.Hour + time.Second)
			synctest.Wait()
			if b.event.Fired != 250 || b.event.Missed != 0 {
				b.Errorf("%d fired and %d missed, want 250 and 0", b.event.Fired, b.event.Missed)
			}
			if n, want := b.count("ChangeSchedules"), (250+most-1)/most; n != want {
				b.Errorf("%d changes, want %d", n, want)
			}
			if b.log.Len() > 0 {
				b.Errorf("log:\n%s", &b.log)
			}
		})
	}
}

// A store that reports schedules as due and refuses each change is not asked without a pause.
func TestRefusedFiringsWait(t *testing.T) {
	onBench(t, func(b *bench) {
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			if r, ok := c.Request.(*ports.ChangeSchedulesRequest); ok {
				*c.Reply.(*ports.ChangeSchedulesReply) = ports.ChangeSchedulesReply{
					Results: make([]ports.ScheduleResult, len(r.Changes)), Head: core.Head{OK: true},
				}
				for i := range r.Changes {
					c.Reply.(*ports.ChangeSchedulesReply).Results[i] = ports.ScheduleRefused
				}
				return nil
			}
			return next(ctx)
		}
		b.schedule(0, 1, 10*time.Second)
		b.run()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.count("ChangeSchedules"); n < 10 || n > 50 {
			b.Errorf("%d changes in 50 s, want 10 to 50", n)
		}
		if b.event.Fired != 0 || b.events != 0 || b.pushed != 0 {
			b.Errorf("%d refused ticks count as fired, in %d events and %d pushes", b.event.Fired, b.events, b.pushed)
		}
	})
}

// A firer that is stopped ends although a store hangs and a backlog is left.
func TestStopEndsABacklog(t *testing.T) {
	onBench(t, func(b *bench) {
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			if c.Method == "ChangeSchedules" {
				<-ctx.Done()
				return ctx.Err()
			}
			return next(ctx)
		}
		b.schedule(0, 250, time.Second)
		b.run()
		time.Sleep(3 * time.Second)
		// The cleanup stops it; a firer that does not end is a deadlock of the bubble.
	})
}

// Shards that the store can't reach are looked at again, and the others fire.
func TestUnreachedShardsAreLookedAtAgain(t *testing.T) {
	onBench(t, func(b *bench) {
		away := true
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			err := next(ctx)
			if reply, ok := c.Reply.(*ports.TicksReply); ok && err == nil {
				b.mu.Lock()
				defer b.mu.Unlock()
				for i, id := range c.Request.(*ports.TicksRequest).Shards {
					if id.Index == 0 && away {
						reply.Shards[i] = ports.ShardTicks{}
						reply.Unreached = append(reply.Unreached, id)
					}
				}
			}
			return err
		}
		b.schedule(0, 1, 10*time.Second)
		b.schedule(1, 1, 10*time.Second)
		b.run()
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if b.event.Fired != 2 {
			b.Errorf("%d ticks were fired, want 2 of the shard that is reached", b.event.Fired)
		}
		b.mu.Lock()
		away = false
		b.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if b.event.Fired != 3 || b.event.Missed != 1 {
			b.Errorf("%d fired and %d missed, want 3 and 1", b.event.Fired, b.event.Missed)
		}
		if log := b.log.String(); !strings.Contains(log, "1 of 2 shards can't be reached") ||
			!strings.Contains(log, "answers again") {
			b.Errorf("log:\n%s", log)
		}
	})
}

// A zone that can't be loaded, or a spec of a newer version, is tried again after a minute.
func TestABrokenSpecIsTriedOnceAMinute(t *testing.T) {
	for _, spec := range []string{"cron * * * * * Nowhere/Land", "moon full Europe/Berlin"} {
		onBench(t, func(b *bench) { triedOnceAMinute(b, spec) })
	}
}

// first returns the first schedule.
func (b *bench) first() core.Schedule {
	b.Helper()
	page, err := b.store.Schedules(b.Context(), ports.SchedulesRequest{Queue: "orders", Limit: 1})
	if err != nil || len(page.Schedules) == 0 {
		b.Fatal("no schedule", err)
	}
	return page.Schedules[0]
}

// change changes a schedule of shard 0.
func (b *bench) change(c ports.ScheduleChange) {
	b.Helper()
	reply, err := b.store.ChangeSchedules(b.Context(), ports.ChangeSchedulesRequest{
		Shard: core.Shard{Queue: "orders"}, Shards: 2, Generation: 1, Changes: []ports.ScheduleChange{c},
	})
	if err != nil || reply.Results[0] != ports.ScheduleChanged {
		b.Fatal(reply.Results, err)
	}
}

// edit changes the first schedule, which is in shard 0.
func (b *bench) edit(edit func(s *core.Schedule)) {
	b.Helper()
	s := b.first()
	c := ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: s.Revision, Schedule: &s}
	edit(&s)
	s.Revision++
	b.change(c)
}

func triedOnceAMinute(b *bench, spec string) {
	b.Helper()
	b.schedule(0, 1, 10*time.Second)
	b.edit(func(s *core.Schedule) { s.Spec = spec })
	b.run()
	time.Sleep(10*time.Second + 5*core.BrokenRetry + time.Second)
	synctest.Wait()
	if b.event.Broken != 6 || b.count("ChangeSchedules") != 6 {
		b.Errorf("%d broken in %d changes, want 6 in 6", b.event.Broken, b.count("ChangeSchedules"))
	}
	if b.event.Fired+b.event.Missed+b.event.Skipped+b.pushed > 0 {
		b.Errorf("%d pushes, event %+v", b.pushed, b.event)
	}
	if log := b.log.String(); strings.Count(log, "can't be read") != 6 || strings.Contains(log, "were missed") {
		b.Errorf("log:\n%s", log)
	}
}

// look returns the request of a look at all shards, or nil for another call.
func look(c storekit.Call) *ports.TicksRequest {
	if r, ok := c.Request.(*ports.TicksRequest); ok && r.Limit == 0 {
		return r
	}
	return nil
}

// lateMost returns the most that a tick was late.
func (b *bench) lateMost() (most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, late := range b.event.Late {
		most = max(most, late)
	}
	return most
}

// Ticks are fired when they are due, not at the next look. Looks are a poll interval apart
// meanwhile, and a firing whose reply has the next tick asks for no other.
func TestTicksAreFiredOnTime(t *testing.T) {
	onBench(t, func(b *bench) {
		var last time.Time
		asked := 0
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			now := time.Now()
			switch {
			case look(c) != nil:
				if gap := now.Sub(last); !last.IsZero() && gap > time.Second {
					b.Errorf("a look %v after the last one", gap)
				}
				last = now
			case c.Method == "Ticks":
				asked++
			}
			return next(ctx)
		}
		b.schedule(0, 1, 1500*time.Millisecond)
		b.schedule(1, 1, time.Hour)
		time.Sleep(200 * time.Millisecond)
		b.run()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if b.event.Fired != 20 || b.lateMost() != 0 || b.pushed != 20 || asked != 20 {
			b.Errorf("%d ticks fired in %d pushes, up to %v late, with %d looks at one shard; want 20, in time",
				b.event.Fired, b.pushed, b.lateMost(), asked)
		}
		if b.log.Len() > 0 {
			b.Errorf("log:\n%s", &b.log)
		}
	})
}

// A look at all shards that hangs is followed by one at each of them. Any other failure is not, and
// the ticks that are known are fired nevertheless.
func TestALookThatFails(t *testing.T) {
	for _, test := range []struct {
		name string
		look func(context.Context, *ports.TicksReply) error
		want string
		// alone is set if each shard is asked by itself.
		alone bool
	}{
		{"hangs", func(ctx context.Context, _ *ports.TicksReply) error {
			<-ctx.Done()
			return ctx.Err()
		}, "deadline exceeded", true},
		{
			"an error",
			func(context.Context, *ports.TicksReply) error { return ports.ErrFull },
			ports.ErrFull.Error(),
			false,
		},
		{"a short reply", func(_ context.Context, r *ports.TicksReply) error {
			*r = ports.TicksReply{}
			return nil
		}, "can't be reached", false},
		{"a short reply of an unreached shard", func(_ context.Context, r *ports.TicksReply) error {
			*r = ports.TicksReply{Unreached: []core.Shard{{Queue: "orders", Index: 1}}}
			return nil
		}, "can't be reached", false},
		{"the second shard is away", func(_ context.Context, r *ports.TicksReply) error {
			if len(r.Shards) == 2 {
				r.Shards[1] = ports.ShardTicks{}
				r.Unreached = []core.Shard{{Queue: "orders", Index: 1}}
			}
			return nil
		}, "1 of 2 shards can't be reached", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			onBench(t, func(b *bench) {
				began := time.Now()
				asked := 0
				b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
					err := next(ctx)
					switch {
					case look(c) != nil && time.Since(began) > 5*time.Second:
						return test.look(ctx, c.Reply.(*ports.TicksReply))
					case c.Method == "Ticks":
						b.mu.Lock()
						asked++
						b.mu.Unlock()
					}
					return err
				}
				b.schedule(0, 1, 10*time.Second)
				b.schedule(1, 1, 10*time.Second)
				b.run()
				time.Sleep(35 * time.Second)
				b.mu.Lock()
				defer b.mu.Unlock()
				if b.event.Fired != 6 || len(b.event.Late) != 6 {
					b.Errorf("%d ticks were fired, want 6", b.event.Fired)
				}
				if alone := asked > 6+6; alone != test.alone { // 6 firings, and 6 looks before the failures
					b.Errorf("%d calls of Ticks, each shard by itself: want %v", asked, test.alone)
				}
				if log := b.log.String(); !strings.Contains(log, test.want) {
					b.Errorf("want %q in the log:\n%s", test.want, log)
				}
			})
		})
	}
}

// One look is under way at a time, and it leaves out the shards that are being fired.
func TestLooksDoNotPileUp(t *testing.T) {
	onBench(t, func(b *bench) {
		looks, most := 0, 0
		var fires time.Time // since when shard 0 is fired
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			b.mu.Lock()
			r := look(c)
			if r != nil {
				looks++
				most = max(most, looks)
				if r.Shards[0].Index == 0 && !fires.IsZero() && time.Since(fires) > 100*time.Millisecond {
					b.Error("a look at a shard that is being fired")
				}
			} else if c.Method == "ChangeSchedules" {
				fires = time.Now()
			}
			b.mu.Unlock()
			time.Sleep(3500 * time.Millisecond)
			b.mu.Lock()
			defer b.mu.Unlock()
			if r != nil {
				looks--
			} else if c.Method == "ChangeSchedules" {
				fires = time.Time{}
			}
			return next(ctx)
		}
		b.schedule(0, 1, 10*time.Second)
		b.run()
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != 1 {
			b.Errorf("%d looks at once", most)
		}
	})
}

// A firing that fails once is tried again soon, and the log names what a store did.
func TestAFiringThatFailsOnceIsTriedAgainSoon(t *testing.T) {
	refused := make([]ports.ScheduleResult, 2)
	for _, test := range []struct {
		name, method string
		reply        func(reply any) error
		want         string
	}{
		{"an error of the look", "Ticks", func(any) error { return ports.ErrFull }, ports.ErrFull.Error()},
		{"an unreached shard", "Ticks", func(reply any) error {
			*reply.(*ports.TicksReply) = ports.TicksReply{
				Shards: make([]ports.ShardTicks, 1), Unreached: []core.Shard{{Queue: "orders"}},
			}
			return nil
		}, "can't be reached"},
		{"no shard", "Ticks", func(reply any) error {
			*reply.(*ports.TicksReply) = ports.TicksReply{}
			return nil
		}, "can't be reached"},
		{"no result", "ChangeSchedules", func(reply any) error {
			*reply.(*ports.ChangeSchedulesReply) = ports.ChangeSchedulesReply{}
			return nil
		}, "0 results for 1 changes"},
		{"too many results", "ChangeSchedules", func(reply any) error {
			*reply.(*ports.ChangeSchedulesReply) = ports.ChangeSchedulesReply{Results: refused}
			return nil
		}, "2 results for 1 changes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onBench(t, func(b *bench) {
				var once sync.Once
				b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) (err error) {
					failed := false
					if c.Method == test.method && look(c) == nil {
						once.Do(func() { failed, err = true, test.reply(c.Reply) })
					}
					if failed {
						return err
					}
					return next(ctx)
				}
				b.schedule(0, 1, 10*time.Second)
				b.run()
				time.Sleep(12 * time.Second)
				synctest.Wait()
				if late := b.lateMost(); b.event.Fired != 1 || late != 50*time.Millisecond {
					b.Errorf("%d ticks were fired, %v late; want 1, 50ms", b.event.Fired, late)
				}
				if log := b.log.String(); !strings.Contains(log, test.want) {
					b.Errorf("want %q in the log:\n%s", test.want, log)
				}
			})
		})
	}
}

// Another server fires the same shard at the same time. One of them is refused, and that is no
// failure.
func TestAFiringThatIsOvertakenIsNoFailure(t *testing.T) {
	onBench(t, func(b *bench) {
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			if r, ok := c.Request.(*ports.ChangeSchedulesRequest); ok {
				if _, err := b.store.ChangeSchedules(ctx, *r); err != nil {
					b.Error(err)
				}
			}
			return next(ctx)
		}
		b.schedule(0, 1, 10*time.Second)
		b.run()
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n := b.count("ChangeSchedules"); n != 3 || b.log.Len() > 0 {
			b.Errorf("%d changes, want 3; log:\n%s", n, &b.log)
		}
	})
}

// A tick that was computed from a removed schedule is not fired for the one that was created in its
// place, even if both were made in one microsecond.
func TestATickOfARemovedScheduleIsNotFired(t *testing.T) {
	onBench(t, func(b *bench) {
		created := core.InstantOf(time.Now())
		b.schedule(0, 1, 10*time.Second)
		replaced := false
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			r, ok := c.Request.(*ports.ChangeSchedulesRequest)
			if !ok || replaced {
				return next(ctx)
			}
			replaced = true
			was := r.Changes[0].Schedule
			d := core.Declaration{ScheduleKey: was.ScheduleKey, Recurrence: was.Recurrence}
			d.Data = []byte("other")
			spec, _ := core.ParseSpec(d.Spec, nil)
			s, _ := d.Apply(core.Schedule{}, spec, "test", created)
			again := *r
			again.Firing = false
			for _, change := range []ports.ScheduleChange{
				{ScheduleKey: was.ScheduleKey, Revision: ports.AnyRevision},
				{ScheduleKey: was.ScheduleKey, Schedule: &s},
			} {
				again.Changes = []ports.ScheduleChange{change}
				if reply, err := b.store.ChangeSchedules(ctx, again); err != nil ||
					reply.Results[0] != ports.ScheduleChanged {
					b.Error(reply.Results, err)
				}
			}
			return next(ctx)
		}
		b.run()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		page, err := b.store.Schedules(b.Context(), ports.SchedulesRequest{Queue: "orders"})
		if err != nil || string(page.Schedules[0].Data) != "other" || page.Schedules[0].Fired != 1 ||
			b.event.Fired != 1 {
			b.Errorf("%v; %d ticks were fired, and the schedule is %+v", err, b.event.Fired, page.Schedules)
		}
	})
}

// Nothing is fired while the store's clock is past the last instant, the store is not asked without
// a pause, and the log names the clock. Once the clock is right again, the schedules continue.
func TestAClockPastTheLastInstantFiresNothing(t *testing.T) {
	for _, spec := range []string{"every 10s 0", "moon full Europe/Berlin"} {
		onBench(t, func(b *bench) {
			var ahead time.Duration
			b.store = memory.New(memory.Options{Clock: func() time.Time {
				b.mu.Lock()
				defer b.mu.Unlock()
				return time.Now().Add(ahead)
			}})
			if _, err := b.store.Declare(b.Context(), ports.DeclareRequest{Queue: "orders", Shards: 2}); err != nil {
				b.Fatal(err)
			}
			b.schedule(0, 1, 10*time.Second)
			b.edit(func(s *core.Schedule) { s.Spec = spec })

			b.mu.Lock()
			ahead = core.Forever
			b.mu.Unlock()
			b.run()
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := b.count("Ticks"); b.count("ChangeSchedules") > 0 || b.events > 0 || n > 100 {
				b.Errorf("%s: %d changes, %d events, %d looks", spec, b.count("ChangeSchedules"), b.events, n)
			}
			if log := b.log.String(); !strings.Contains(log, "clock is past 2255") ||
				!strings.Contains(log, "correct the clock") {
				b.Errorf("%s: log:\n%s", spec, log)
			}

			b.mu.Lock()
			ahead = 0
			b.mu.Unlock()
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if b.event.Fired+b.event.Broken == 0 {
				b.Errorf("%s: nothing was fired by the right clock; log:\n%s", spec, &b.log)
			}
		})
	}
}

// A schedule that is due by a clock that has stepped back since is not changed.
func TestASteppedClockFiresNothing(t *testing.T) {
	onBench(t, func(b *bench) {
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			err := next(ctx)
			if c.Method == "Ticks" && look(c) == nil {
				c.Reply.(*ports.TicksReply).Shards[0].Now -= core.Instant(time.Hour.Microseconds())
			}
			return err
		}
		b.schedule(0, 1, 10*time.Second)
		b.run()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if n := b.count("ChangeSchedules"); n != 0 || b.log.Len() > 0 {
			b.Errorf("%d changes, want none; log:\n%s", n, &b.log)
		}
	})
}

// A tick of an id with a queued job is counted as skipped, if the schedule has Skip. It pushes
// nothing, and is neither late nor missed.
func TestSkippedTicksAreReported(t *testing.T) {
	onBench(t, func(b *bench) {
		b.schedule(0, 1, 10*time.Second)
		b.edit(func(s *core.Schedule) { s.Skip = true })
		id := b.first().ID
		if _, err := b.store.Push(b.Context(), ports.PushRequest{
			Queue:      "orders",
			Shards:     2,
			Generation: 1,
			Entries:    []core.Entry{{ID: id, Payload: core.Payload{Data: []byte("x")}}},
		}); err != nil {
			b.Fatal(err)
		}
		b.run()
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if b.event.Skipped != 3 || b.event.Fired+b.event.Missed+b.pushed > 0 || b.events != 3 {
			b.Errorf("%d events and %d pushes, want 3 events of skipped ticks: %+v", b.events, b.pushed, b.event)
		}
		if s := b.first(); s.Skipped != 3 || b.log.Len() > 0 {
			b.Errorf("the schedule is %+v; log:\n%s", s, &b.log)
		}
	})
}

// The log names the schedule whose ticks were missed, not another one that is fired with it.
func TestTheLogNamesTheScheduleWithMissedTicks(t *testing.T) {
	onBench(t, func(b *bench) {
		b.schedule(0, 2, 10*time.Second)
		missed := b.first()
		all, err := b.store.Schedules(b.Context(), ports.SchedulesRequest{Queue: "orders"})
		if err != nil {
			b.Fatal(err)
		}
		other := all.Schedules[1]
		revision := other.Revision
		other.Next, other.Revision = missed.Next.Add(10*time.Second), revision+1
		b.change(ports.ScheduleChange{ScheduleKey: other.ScheduleKey, Revision: revision, Schedule: &other})

		time.Sleep(25 * time.Second)
		b.run()
		time.Sleep(time.Second)
		synctest.Wait()
		if log := b.log.String(); b.event.Fired != 2 || b.event.Missed != 1 ||
			!strings.Contains(log, "ticks=1 id="+missed.ID+" ") {
			b.Errorf("%d fired and %d missed, of %s; log:\n%s", b.event.Fired, b.event.Missed, missed.ID, log)
		}
	})
}

// The log names a schedule with missed ticks, and an event has how late the others were: never less
// than nothing, by whatever clock.
func TestMissedAndLateTicksAreReported(t *testing.T) {
	onBench(t, func(b *bench) {
		back := core.Instant(0)
		b.around = func(ctx context.Context, c storekit.Call, next func(context.Context) error) error {
			err := next(ctx)
			if reply, ok := c.Reply.(*ports.ChangeSchedulesReply); ok {
				reply.Now -= back
			}
			return err
		}
		b.schedule(0, 1, 10*time.Second)
		b.schedule(1, 1, 20*time.Second)
		time.Sleep(23 * time.Second)
		b.run()
		time.Sleep(time.Second)
		synctest.Wait()
		if late := b.lateMost(); b.event.Fired != 2 || late != 3*time.Second {
			b.Errorf("%d ticks were fired, %v late; want 2, 3s", b.event.Fired, late)
		}
		if log := b.log.String(); strings.Count(log, "were missed") != 1 || !strings.Contains(log, "ticks=1 id=id-") {
			b.Errorf("log:\n%s", log)
		}
		b.mu.Lock()
		back, b.event.Late = core.Instant(time.Hour.Microseconds()), nil
		b.mu.Unlock()
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if len(b.event.Late) != 1 || b.event.Late[0] != 0 {
			b.Errorf("late by %v, want 0", b.event.Late)
		}
	})
}
