package execution

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/clock"
)

type (
	valueKey struct{}
	otherKey struct{}
)

// testShard is a shard of a server that was started with a context.
func testShard(ctx context.Context) *Shard {
	return &Shard{Queue: &Queue{}, Server: &Server{Handlers: context.WithoutCancel(ctx), Stop: ctx, Clock: clock.New()}}
}

// testBatch is a batch of jobs under lease token 7, whose server was started with a value in its
// context.
func testBatch(jobs int) *Batch {
	b := new(Batch)
	b.Start(testShard(context.WithValue(context.Background(), valueKey{}, "value")), 7, make([]core.Claim, jobs),
		time.Now())
	return b
}

func ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// A handler's context behaves like any other, whichever method is called first.
func TestAHandlersContextEndsWithItsCause(t *testing.T) {
	cause := errors.New("why")
	for name, ask := range map[string]func(ctx context.Context){
		"nothing was asked before": func(context.Context) {},
		"Done was asked before":    func(ctx context.Context) { ctx.Done() },
		"Cause was asked before":   func(ctx context.Context) { _ = context.Cause(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			b := testBatch(1)
			var ctx context.Context = b.ctx
			ask(ctx)
			if err, why := ctx.Err(), context.Cause(ctx); err != nil || why != nil {
				t.Errorf("before the end: Err %v, Cause %v", err, why)
			}
			b.Interrupt(cause)
			b.Interrupt(errors.New("a second one"))
			if !ended(ctx) || !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), cause) {
				t.Errorf("after the end: Done %v, Err %v, Cause %v", ended(ctx), ctx.Err(), context.Cause(ctx))
			}
		})
	}
}

func TestContextsDerivedFromAHandlersEndWithIt(t *testing.T) {
	cause := errors.New("why")
	for name, derive := range map[string]func(ctx context.Context) (context.Context, func()){
		"WithCancel": func(ctx context.Context) (context.Context, func()) {
			c, cancel := context.WithCancel(ctx)
			return c, cancel
		},
		"WithTimeout": func(ctx context.Context) (context.Context, func()) {
			c, cancel := context.WithTimeout(ctx, time.Hour)
			return c, cancel
		},
		"WithValue": func(ctx context.Context) (context.Context, func()) {
			return context.WithValue(ctx, valueKey{}, 1), func() {}
		},
		"WithCancel of WithValue": func(ctx context.Context) (context.Context, func()) {
			c, cancel := context.WithCancel(context.WithValue(ctx, valueKey{}, 1))
			return c, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := testBatch(1)
				before, cancel := derive(b.ctx)
				defer cancel()

				b.Interrupt(cause)
				after, cancelAfter := derive(b.ctx)
				defer cancelAfter()
				synctest.Wait()

				for when, ctx := range map[string]context.Context{"before": before, "after": after} {
					if !ended(ctx) || !errors.Is(context.Cause(ctx), cause) {
						t.Errorf("derived %s the end: Done %v, Cause %v", when, ended(ctx), context.Cause(ctx))
					}
				}
			})
		})
	}
}

func TestATimeoutOfItsOwnEndsADerivedContextAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBatch(1)
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || b.ctx.Err() != nil {
			t.Errorf("derived: %v, its parent: %v; want the deadline alone", ctx.Err(), b.ctx.Err())
		}
	})
}

func TestAfterFuncRunsWhenAHandlersContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBatch(1)
		ran, stopped := false, true
		context.AfterFunc(b.ctx, func() { ran = true })
		stop := context.AfterFunc(b.ctx, func() { stopped = false })
		if !stop() {
			t.Error("the function could not be stopped")
		}
		synctest.Wait()
		if ran {
			t.Error("it ran before the end")
		}
		b.Close(nil)
		synctest.Wait()
		if !ran || !stopped {
			t.Errorf("after the end: ran %v, stopped %v", ran, stopped)
		}
	})
}

func TestWhatAHandlersContextCarries(t *testing.T) {
	for name, end := range map[string]func(b *Batch){
		"while it runs":                  func(*Batch) {},
		"while it runs, Done was asked":  func(b *Batch) { b.ctx.Done() },
		"after its end":                  func(b *Batch) { b.Close(nil) },
		"after its end, Done was asked":  func(b *Batch) { b.ctx.Done(); b.Close(nil) },
		"after an interrupt by a cancel": func(b *Batch) { b.Cancel(0, true) },
	} {
		t.Run(name, func(t *testing.T) {
			b := testBatch(1)
			end(b)

			for which, ctx := range map[string]context.Context{
				"itself": b.ctx, "without its cancel": context.WithoutCancel(b.ctx),
				"derived": context.WithValue(b.ctx, otherKey{}, 1),
			} {
				if got := ctx.Value(valueKey{}); got != "value" {
					t.Errorf("%s: Value = %v", which, got)
				}
				if token, ok := Fence(ctx); !ok || token != 7 {
					t.Errorf("%s: Fence = %d, %v; want 7", which, token, ok)
				}
				if _, ok := ctx.Deadline(); ok {
					t.Errorf("%s: it has a deadline", which)
				}
			}

			if ctx := context.WithoutCancel(b.ctx); ctx.Err() != nil || ctx.Done() != nil || context.Cause(ctx) != nil {
				t.Error("without its cancel it still ends")
			}
		})
	}
}

func TestAContextThatIsNoHandlersHasNoFence(t *testing.T) {
	if token, ok := Fence(t.Context()); ok {
		t.Errorf("Fence = %d", token)
	}
}

func TestEachJobOfABatchHasAContextOfItsOwn(t *testing.T) {
	b := testBatch(3)
	handed := context.WithValue(context.Context(b.ctx), valueKey{}, "the observer's")
	first, ok := b.Begin(handed, 0)
	if !ok || ended(first) || first.Value(valueKey{}) != "the observer's" {
		t.Fatalf("the first job's context: Done %v, Value %v", ended(first), first.Value(valueKey{}))
	}
	b.Cancel(0, true)
	b.Cancel(1, false)
	if !ended(first) || !errors.Is(context.Cause(first), ErrCancelled) {
		t.Errorf("the first job's context: Done %v, Cause %v", ended(first), context.Cause(first))
	}
	if _, ok := b.Begin(handed, 1); ok {
		t.Error("a job that was cancelled before may begin")
	}
	third, ok := b.Begin(handed, 2)
	if !ok || ended(third) || third.Value(valueKey{}) != "the observer's" {
		t.Fatalf("the third job's context: Done %v, Value %v", ended(third), third.Value(valueKey{}))
	}
	if token, ok := Fence(third); !ok || token != 7 {
		t.Errorf("Fence = %d, %v; want 7", token, ok)
	}
	cause := errors.New("why")
	b.Interrupt(cause)
	if !ended(third) || !errors.Is(context.Cause(third), cause) {
		t.Errorf("interrupted: Done %v, Cause %v", ended(third), context.Cause(third))
	}
}

func TestABatchOfOneJobCostsOneAllocation(t *testing.T) {
	s := testShard(context.Background())
	claims, now := make([]core.Claim, 1), time.Now()
	var b *Batch
	if n := testing.AllocsPerRun(100, func() {
		b = new(Batch)
		b.Start(s, 1, claims, now)
		ctx, _ := b.Begin(b.ctx, 0)
		_ = ctx.Err()
		b.SetOutcome(0, nil)
		b.Close(nil)
	}); n != 1 {
		t.Errorf("%v allocations, want 1", n)
	}
	if b.outcomes[0].Kind != core.Done {
		t.Errorf("outcome %v, want done", b.outcomes[0].Kind)
	}
}
