package skein_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// waitBench has a queue of which each test decides how its jobs end. Time is virtual.
type waitBench struct {
	t      *testing.T
	store  ports.ShardStore
	client *skein.Client
	orders *skein.Queue[string]
	server *skein.Server
	*inspect.Inspector

	// handle is the handler; nil is done without a result. reads is the number of calls of Pending.
	handle func(ctx context.Context, job *skein.Job[string]) error
	reads  atomic.Int64
	// around, if set, is called in place of each call of Pending and Find.
	around func(method string, next func() error) error
	// change, if set, changes the replies of Pending.
	change func(*ports.PendingReply)
}

func withWaits(t *testing.T, o skein.QueueOptions[string], test func(b *waitBench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &waitBench{t: t, orders: skein.NewQueue("orders", o)}
		b.store = storekit.Intercept(memory.New(memory.Options{}), func(
			ctx context.Context,
			call storekit.Call,
			next func(context.Context) error,
		) error {
			if call.Method == "Pending" {
				b.reads.Add(1)
			}
			if b.around != nil && (call.Method == "Pending" || call.Method == "Find") {
				return b.around(call.Method, func() error { return next(ctx) })
			}
			err := next(ctx)
			if reply, ok := call.Reply.(*ports.PendingReply); ok && b.change != nil {
				b.change(reply)
			}
			return err
		})
		b.client = skein.NewClient(b.store, skein.ClientOptions{})
		b.Inspector = inspect.New(b.store, inspect.Options{})
		b.handle = func(ctx context.Context, job *skein.Job[string]) error {
			return skein.SetResult(ctx, receipt{len(job.Payloads)})
		}
		handler := b.orders.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
			if b.handle == nil {
				return nil
			}
			return b.handle(ctx, job)
		})
		b.server = skein.NewServer(b.store, skein.ServerOptions{Name: "blue"}, handler)
		test(b)
	})
}

func keeping() skein.QueueOptions[string] {
	return skein.QueueOptions[string]{
		Keep:       skein.Keep{Age: time.Hour},
		MaxRetries: 1,
		Backoff:    func(int) time.Duration { return time.Minute },
	}
}

func (b *waitBench) push(id, payload string, options ...skein.PushOption) {
	b.t.Helper()
	check(b.t, b.orders.Push(b.t.Context(), b.client, id, payload, options...))
}

func (b *waitBench) run() {
	b.t.Helper()
	_, err := b.server.RunDue(b.t.Context())
	check(b.t, err)
}

// waited is the result of a Wait.
type waited struct {
	past skein.Past[receipt]
	err  error
	took time.Duration
}

// start starts a Wait for an id, which has made its first read when start returns.
func (b *waitBench) start(id string) <-chan waited {
	b.t.Helper()
	result, began := make(chan waited, 1), time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(b.t.Context(), 100*time.Hour)
		defer cancel()
		past, err := skein.Wait[receipt](ctx, b.client, b.orders, id)
		result <- waited{past, err, time.Since(began)}
	}()
	time.Sleep(time.Second)
	synctest.Wait()
	return result
}

// waits checks that a Wait has not returned.
func (b *waitBench) waits(what string, result <-chan waited) {
	b.t.Helper()
	time.Sleep(time.Hour / 2)
	select {
	case r := <-result:
		b.t.Fatalf("%s: Wait returned %+v, %v", what, r.past, r.err)
	default:
	}
}

// ends checks the error of a Wait, and returns its record.
func (b *waitBench) ends(what string, result <-chan waited, reason error) skein.Past[receipt] {
	b.t.Helper()
	r := <-result
	if !errors.Is(r.err, reason) || reason == nil && r.err != nil {
		b.t.Fatalf("%s: Wait returned the error %v, want %v", what, r.err, reason)
	}
	return r.past
}

func TestWaitReturnsTheRecordAndTheResult(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("42", "p", skein.In(10*time.Second))
		b.push("42", "q", skein.Score(1<<40))
		result := b.start("42")
		b.waits("queued", result)
		began := time.Now()
		b.run()
		past := b.ends("done", result, nil)
		if past.Result.Number != 2 || !past.HasResult || past.Node != "blue" || past.PayloadCount != 2 ||
			past.Score != 1<<40 || past.Attempt != 1 || past.DoneAt.Before(began) {
			b.t.Errorf("the record is %+v", past)
		}

		// A wait for what is settled returns at once, with one read.
		reads := b.reads.Load()
		past, err := skein.Wait[receipt](b.t.Context(), b.client, b.orders, "42")
		if err != nil || past.Result.Number != 2 || b.reads.Load() != reads+1 {
			b.t.Errorf("again: %+v, %v after %d reads", past, err, b.reads.Load()-reads)
		}

		b.handle = nil
		b.push("none", "p")
		b.run()
		past, err = skein.Wait[receipt](b.t.Context(), b.client, b.orders, "none")
		if err != nil || past.HasResult || past.DoneAt.IsZero() {
			b.t.Errorf("without a result: %+v, %v", past, err)
		}
	})
}

func TestWaitTellsHowAnIDWasNotDone(t *testing.T) {
	hold := keeping()
	hold.Exhausted = skein.Hold
	fails := func(context.Context, *skein.Job[string]) error { return errBoom }

	for name, test := range map[string]struct {
		options skein.QueueOptions[string]
		before  func(b *waitBench)
		act     func(b *waitBench)
		reason  error
		waited  bool
		failure string
	}{
		"never pushed": {options: keeping(), reason: skein.ErrNoRecord},
		"done and gone": {
			before: func(b *waitBench) { b.push("a", "p"); b.handle = nil; b.run() },
			reason: skein.ErrNoRecord,
		},
		"dead": {
			options: keeping(),
			before:  func(b *waitBench) { b.push("a", "p"); b.handle = fails },
			act:     func(b *waitBench) { b.run(); time.Sleep(time.Hour); b.run() },
			reason:  skein.ErrDead, waited: true, failure: "boom",
		},
		"dead before": {
			options: keeping(),
			before:  func(b *waitBench) { b.push("a", "p"); b.handle = fails; b.run(); time.Sleep(time.Hour); b.run() },
			reason:  skein.ErrDead, failure: "boom",
		},
		"held": {
			options: hold,
			before:  func(b *waitBench) { b.push("a", "p"); b.handle = fails },
			act:     func(b *waitBench) { b.run(); time.Sleep(time.Hour); b.run() },
			reason:  skein.ErrHeld, waited: true, failure: "boom",
		},
		"removed": {
			options: keeping(),
			before:  func(b *waitBench) { b.push("a", "p") },
			act: func(b *waitBench) {
				_, err := b.Delete(b.t.Context(), "orders", inspect.JobIDs("a"))
				check(b.t, err)
			},
			reason: skein.ErrNoRecord, waited: true,
		},
		"done in a queue without records": {
			before: func(b *waitBench) { b.push("a", "p"); b.handle = nil },
			act:    func(b *waitBench) { b.run() },
			reason: skein.ErrNoRecord, waited: true,
		},
		"buried by hand": {
			options: keeping(),
			before:  func(b *waitBench) { b.push("a", "p") },
			act: func(b *waitBench) {
				_, err := b.Bury(b.t.Context(), "orders", inspect.JobIDs("a"))
				check(b.t, err)
			},
			reason: skein.ErrDead, waited: true, failure: "buried by hand",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withWaits(t, test.options, func(b *waitBench) {
				b.push("other", "p", skein.In(24*time.Hour))
				if test.before != nil {
					test.before(b)
				}
				result := b.start("a")
				if test.act != nil {
					b.waits(name, result)
					test.act(b)
				}

				r := <-result
				var end *skein.NotDoneError
				if !errors.As(r.err, &end) || !errors.Is(r.err, test.reason) || end.ID != "a" || end.Queue != "orders" ||
					end.Waited != test.waited || end.Failure.Text != test.failure {
					b.t.Errorf("Wait returned the error %v (%+v)", r.err, end)
				}
				if r.past != (skein.Past[receipt]{}) {
					b.t.Errorf("beside %v Wait returned %+v", r.err, r.past)
				}
			})
		})
	}
}

// A later push waits for the run of an earlier one, and Wait does not wait for the later one.
func TestWaitIsNotDelayedByLaterPushes(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("a", "p")
		var result <-chan waited
		b.handle = func(ctx context.Context, job *skein.Job[string]) error {
			result = b.start("a")
			b.push("a", "later", skein.In(10*time.Hour))
			return skein.SetResult(ctx, receipt{7})
		}
		b.run()
		if past := b.ends("done beside a push", result, nil); past.Result.Number != 7 {
			b.t.Errorf("the record is %+v", past)
		}

		// A wait that begins now includes the push.
		b.waits("the push", b.start("a"))
	})
}

// A job that fails merges with what was pushed meanwhile, and Wait waits for both.
func TestWaitFollowsAJobThatIsPutBack(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("a", "p")
		var result <-chan waited
		b.handle = func(_ context.Context, job *skein.Job[string]) error {
			if result == nil {
				result = b.start("a")
			}
			b.push("a", "q")
			return errBoom
		}
		b.run()
		b.waits("put back", result)

		b.handle = func(ctx context.Context, job *skein.Job[string]) error {
			return skein.SetResult(ctx, receipt{len(job.Payloads)})
		}
		b.run()
		if past := b.ends("both done", result, nil); past.Result.Number != 2 || past.Attempt != 2 {
			b.t.Errorf("the record is %+v", past)
		}
	})
}

// Wait never takes what is in the morgue for done: if some payloads of an id died and others are
// done, the id is dead. A dead letter from before does not count.
func TestWaitOfAJobThatDiesInParts(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("a", "bad", skein.Score(1))
		b.push("a", "good", skein.Score(2))
		result := b.start("a")
		b.handle = func(ctx context.Context, job *skein.Job[string]) error {
			if job.Payloads[0].Value == "bad" {
				return errBoom
			}
			return nil
		}
		b.run()
		time.Sleep(time.Hour)
		b.run() // buries the first payload, and then runs the other
		if past := b.ends("the other is done", result, skein.ErrDead); past.DoneAt.IsZero() {
			b.t.Error("there is no record of the payload that was done")
		}

		time.Sleep(time.Second)
		b.push("a", "again")
		result = b.start("a")
		b.run()
		b.ends("done beside a dead letter of before", result, nil)
		b.ends("asked afterwards", b.start("a"), nil)
	})
}

// What ends while the first read is under way has ended. What is pushed meanwhile may be waited for
// or not, and Wait returns in either case.
func TestWaitBesideItsFirstRead(t *testing.T) {
	for name, late := range map[string]bool{"the read is before the end": false, "the read is behind the end": true} {
		t.Run(name, func(t *testing.T) {
			withWaits(t, keeping(), func(b *waitBench) {
				b.push("a", "p")
				var once sync.Once
				b.around = func(method string, next func() error) (err error) {
					act := func() { b.run(); b.push("a", "q"); b.push("b", "p") }
					if late {
						once.Do(act)
					}
					err = next()
					once.Do(act)
					return err
				}
				result := b.start("a")
				b.run()
				b.ends(name, result, nil)
			})
		})
	}
}

// Thousands of waits share their reads, whether they begin together or one after another.
func TestWaitsShareTheirReads(t *testing.T) {
	for name, apart := range map[string]time.Duration{"together": 0, "one after another": 7 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			withWaits(t, keeping(), func(b *waitBench) {
				const n = 2500
				var entries []skein.Entry[string]
				for i := range n {
					entries = append(entries, skein.Entry[string]{ID: fmt.Sprint(i), Payload: "p"})
				}
				check(b.t, b.orders.PushMany(b.t.Context(), b.client, entries))

				began := time.Now()
				var ended sync.WaitGroup
				var failed atomic.Int64
				for i := range n {
					ended.Go(func() {
						if _, err := skein.Wait[receipt](b.t.Context(), b.client, b.orders, fmt.Sprint(i)); err != nil {
							failed.Add(1)
						}
					})
					time.Sleep(apart)
				}
				time.Sleep(time.Minute - time.Since(began))
				b.run()
				done := time.Now()
				ended.Wait()

				if late := time.Since(done); failed.Load() > 0 || late > 1100*time.Millisecond {
					b.t.Errorf("%d of %d waits failed, and the last returned %v after its end", failed.Load(), n, late)
				}
				b.t.Logf("%d reads", b.reads.Load())
				// A read has at most 1,000 ids. While waits begin, there are at most 1,000 reads a second.
				if most := 400 + int64(n*apart/time.Millisecond); b.reads.Load() > most {
					b.t.Errorf("%d waits of a minute made %d reads, want at most %d", n, b.reads.Load(), most)
				}
			})
		})
	}
}

// A wait that has just begun does not wait for the reads of older ones.
func TestWaitBesideOlderOnes(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		for i := range 50 {
			id := fmt.Sprint("older-", i)
			b.push(id, "p", skein.In(50*time.Hour))
			b.start(id)
		}
		b.push("a", "p")
		time.AfterFunc(20*time.Millisecond, b.run)
		began := time.Now()
		past, err := skein.Wait[receipt](b.t.Context(), b.client, b.orders, "a")
		if took := time.Since(began); err != nil || past.Result.Number != 1 || took > 30*time.Millisecond {
			b.t.Errorf("after %v Wait returned %+v, %v", took, past, err)
		}
	})
}

// The reads of one wait come less often the longer it lasts.
func TestWaitReadsLessAndLess(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("a", "p", skein.In(time.Hour))
		ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
		defer cancel()
		_, err := skein.Wait[receipt](ctx, b.client, b.orders, "a")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `id "a" of queue "orders"`) ||
			!strings.Contains(err.Error(), "queued") {
			b.t.Errorf("after its deadline Wait returned %v", err)
		}
		if n := b.reads.Load(); n < 25 || n > 60 {
			b.t.Errorf("a wait of 10 s made %d reads", n)
		}

		// Nothing reads after the last wait.
		n := b.reads.Load()
		time.Sleep(time.Minute)
		if b.reads.Load() != n {
			b.t.Errorf("%d reads came after the last wait", b.reads.Load()-n)
		}
	})
}

// A store that takes long for its reads, or fails, is not asked more often by more waits.
func TestWaitsSpareASlowStore(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		err   error
		most  int64
	}{
		"slow":   {takes: 100 * time.Millisecond, most: 25},
		"failed": {err: errBoom, most: 220},
	} {
		t.Run(name, func(t *testing.T) {
			withWaits(t, keeping(), func(b *waitBench) {
				b.push("other", "p")
				b.around = func(_ string, next func() error) error {
					time.Sleep(test.takes)
					if test.err != nil {
						return test.err
					}
					return next()
				}
				ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
				defer cancel()
				var ended sync.WaitGroup
				for range 1000 {
					ended.Go(func() { _, _ = skein.Wait[receipt](ctx, b.client, b.orders, "other") })
					time.Sleep(10 * time.Millisecond)
				}
				ended.Wait()
				time.Sleep(test.takes) // of the read that was under way
				if n := b.reads.Load(); n > test.most {
					b.t.Errorf("in 10 s there were %d reads, want at most %d", n, test.most)
				}
			})
		})
	}
}

// A record of an earlier run does not tell that a job which was removed since is done.
func TestWaitOfARemovedJobBesideARecord(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("a", "p")
		b.run()
		time.Sleep(time.Second)
		b.push("a", "q")
		otherType := make(chan error, 1)
		go func() {
			_, err := skein.Wait[[]int](b.t.Context(), b.client, b.orders, "a")
			otherType <- err
		}()
		result := b.start("a")
		_, err := b.Delete(b.t.Context(), "orders", inspect.JobIDs("a"))
		check(b.t, err)
		if err := <-otherType; !errors.Is(err, skein.ErrNoRecord) {
			b.t.Errorf("with another type Wait returned %v", err)
		}
		if past := b.ends("removed", result, skein.ErrNoRecord); past.Result.Number != 1 {
			b.t.Errorf("beside the error Wait returned %+v", past)
		}
	})
}

// A shard that can't be reached does not end the waits for its ids, and a record that can't be read
// ends them with an error.
func TestWaitOfWhatCantBeRead(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("a", "p")
		b.run()
		var reached atomic.Bool
		b.change = func(reply *ports.PendingReply) {
			if !reached.Load() {
				shard := reply.IDs[0].Shard
				reply.IDs[0], reply.Unreached = ports.Pending{Shard: shard}, []core.Shard{shard}
			}
		}
		result := b.start("a")
		b.waits("unreached", result)
		reached.Store(true)
		b.ends("reached again", result, nil)

		b.change = func(reply *ports.PendingReply) {
			reply.IDs[0] = ports.Pending{Shard: reply.IDs[0].Shard, Now: reply.IDs[0].Now, Damaged: true}
		}
		if r := <-b.start("a"); r.err == nil || !strings.Contains(r.err.Error(), "can't read a record") {
			b.t.Errorf("with a damaged record Wait returned %+v, %v", r.past, r.err)
		}
	})
}

// What is there at the first read is waited for, also if the store's clock has stepped back since
// it was pushed.
func TestWaitAfterAStepBackOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		store := memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
		client := skein.NewClient(store, skein.ClientOptions{})
		orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
		check(t, orders.Push(t.Context(), client, "a", "p"))
		back.Store(int64(time.Hour))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := skein.Wait[receipt](ctx, client, orders, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait returned %v for a queued job", err)
		}
	})
}

func TestWaitTriesAgainWhileTheStoreFails(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		b.push("a", "p")
		b.run()
		fails := 40
		b.around = func(_ string, next func() error) error {
			if fails--; fails > 0 && fails%2 == 0 || fails > 20 {
				return []error{errBoom, ports.ErrReadOnly, ports.ErrNotBegun}[fails%3]
			}
			return next()
		}
		past, err := skein.Wait[receipt](b.t.Context(), b.client, b.orders, "a")
		if err != nil || past.Result.Number != 1 {
			b.t.Errorf("Wait returned %+v, %v", past, err)
		}

		b.around = func(string, func() error) error { return errBoom }
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		defer cancel()
		if _, err = skein.Wait[receipt](ctx, b.client, b.orders, "a"); !errors.Is(err, context.DeadlineExceeded) ||
			!errors.Is(err, errBoom) {
			b.t.Errorf("while all reads fail, Wait returned %v", err)
		}

		for _, method := range []string{"Pending", "Find"} {
			b.around = func(m string, next func() error) error {
				if m == method {
					return fmt.Errorf("%w: no rights", ports.ErrUnusable)
				}
				return next()
			}
			if _, err = skein.Wait[receipt](b.t.Context(), b.client, b.orders, "a"); !errors.Is(err, skein.ErrUnusable) {
				b.t.Errorf("while %s is refused, Wait returned %v", method, err)
			}
		}
	})
}

// A held job that an operator has released between the two reads of Wait is waited for.
func TestWaitGoesOnAfterARelease(t *testing.T) {
	o := keeping()
	o.Exhausted = skein.Hold
	withWaits(t, o, func(b *waitBench) {
		b.push("a", "p")
		b.handle = func(context.Context, *skein.Job[string]) error { return errBoom }
		b.run()
		time.Sleep(time.Hour)
		b.run()

		released := false
		b.around = func(method string, next func() error) error {
			if method == "Find" && !released {
				released = true
				_, err := b.RunNow(b.t.Context(), "orders", inspect.JobIDs("a"))
				check(b.t, err)
			}
			return next()
		}
		result := b.start("a")
		b.waits("released", result)
		b.handle = nil
		b.run()
		b.ends("done", result, nil)
	})
}

func TestWaitRefuses(t *testing.T) {
	withWaits(t, keeping(), func(b *waitBench) {
		try := func(what string, want error, c *skein.Client, q *skein.Queue[string], id string) {
			b.t.Helper()
			_, err := skein.Wait[receipt](b.t.Context(), c, q, id)
			if !errors.Is(err, want) {
				b.t.Errorf("%s: Wait returned %v, want %v", what, err, want)
			}
		}
		try("an unknown queue", skein.ErrUnknownQueue, b.client, b.orders, "a")
		try("no id", skein.ErrInvalidID, b.client, b.orders, "")
		try("an invalid id", skein.ErrInvalidID, b.client, b.orders, "line\nbreak")
		try("an invalid queue", skein.ErrInvalidQueue, b.client, skein.NewQueue("no name", keeping()), "a")
		try("no queue", skein.ErrInvalidQueue, b.client, nil, "a")
		try("no client", skein.ErrInvalidOptions, nil, b.orders, "a")
		try("a client without a store", skein.ErrInvalidOptions, skein.NewClient(nil, skein.ClientOptions{}), b.orders, "a")
		pushOnly := skein.NewClient(struct{ ports.Producer }{b.store}, skein.ClientOptions{})
		try("a client that only pushes", skein.ErrInvalidOptions, pushOnly, b.orders, "a")

		b.push("a", "p")
		b.run()
		via := b.client.Via(struct{ ports.Producer }{b.store})
		if _, err := skein.Wait[receipt](b.t.Context(), via, b.orders, "a"); err != nil {
			b.t.Errorf("via another producer Wait returned %v", err)
		}
		if past, err := skein.Wait[[]int](b.t.Context(), b.client, b.orders, "a"); !errors.Is(err, skein.ErrInvalidPayload) ||
			past.DoneAt.IsZero() {
			b.t.Errorf("with another type Wait returned %+v, %v", past, err)
		}

		ended, cancel := context.WithCancel(b.t.Context())
		cancel()
		b.push("b", "p")
		if _, err := skein.Wait[receipt](ended, b.client, b.orders, "b"); !errors.Is(err, context.Canceled) {
			b.t.Errorf("with an ended context Wait returned %v", err)
		}
	})
}
