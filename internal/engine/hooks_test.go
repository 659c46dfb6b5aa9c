package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
)

// hookLog counts the calls of a hook.
type hookLog struct {
	mu               sync.Mutex
	began, now, most int
	causes           []error
}

func (l *hookLog) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began++
	l.now++
	l.most = max(l.most, l.now)
}

func (l *hookLog) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now--
	if cause != nil {
		l.causes = append(l.causes, cause)
	}
}

func (l *hookLog) calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// burying is an option: jobs are not retried, and the hook takes so long.
func burying(l *hookLog, takes time.Duration) func(*setup) {
	return func(s *setup) {
		s.queue.Policy.MaxRetries = 0
		s.Buried = func(ctx context.Context, _ report.Buried) error {
			l.begin()
			timer := time.NewTimer(max(takes, 1)) // never 0: see randomHistory
			defer timer.Stop()
			select {
			case <-timer.C:
				l.end(nil)
			case <-ctx.Done():
				l.end(context.Cause(ctx))
			}
			return nil
		}
	}
}

func failEach(context.Context, *core.Claim) error { return errors.New("no") }

func TestAFewHooksRunAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var l hookLog
		n := w.start(each(failEach), burying(&l, time.Second))
		w.sleep(poll)
		began := w.elapsed()
		w.pushEach(100)
		w.sleep(500 * time.Millisecond)
		if l.calls() != 4 {
			w.Errorf("%d hooks run, want 4", l.calls())
		}
		w.sleepUntil(began + 25*time.Second + poll)
		if l.calls() != 100 || l.most != 4 || l.now != 0 {
			w.Errorf("%d hooks were called, %d at once, and %d run; want 100, 4 and 0", l.calls(), l.most, l.now)
		}
		if got := n.log.count("OnBuried was not called"); got != 0 {
			w.Errorf("%d are said to be missed, want none", got)
		}
		w.wantCounts(0, 0, 0, 100)
	})
}

// A slow hook stops no job, and each burial that it is not called for is in the log.
func TestBurialsWithoutRoomAreLoggedAndCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		const jobs = 1300
		var l hookLog
		n := w.start(each(failEach), burying(&l, time.Hour))
		w.sleep(poll)
		w.pushEach(jobs)
		w.sleep(10 * poll)
		w.wantCounts(0, 0, 0, jobs)
		w.sleep(10 * time.Second)
		missed := len(n.log.lines("OnBuried was not called for a burial", "too many calls wait"))
		if missed != 10 || len(n.log.lines("more burials without a call of OnBuried", "count=286")) != 1 {
			w.Errorf("%d burials are logged as missed, want 10, and a line that counts the other 286", missed)
		}
	})
}

func TestHooksEndWithTheShutdownTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		var l hookLog
		n := w.start(each(failEach), burying(&l, time.Hour), func(s *setup) { s.ShutdownTimeout = 7 * time.Second })
		w.sleep(poll)
		w.pushEach(10)
		w.sleep(poll)
		stopped := w.elapsed()
		n.stop()
		w.within("Run's return after the stop", w.elapsed()-stopped, 7*time.Second, 7*time.Second+100*time.Millisecond)
		if len(l.causes) != 4 {
			w.Fatalf("%d hooks saw their context end, want 4", len(l.causes))
		}
		for _, cause := range l.causes {
			if !errors.Is(cause, execution.ErrShutdown) {
				w.Errorf("a hook's context ended for %v, want %v", cause, execution.ErrShutdown)
			}
		}
		if got := len(n.log.lines("OnBuried was not called for a burial",
			"the server's shutdown timeout has passed")); got != 6 {
			w.Errorf("%d are logged as missed, want the 6 that waited", got)
		}
	})
}

// The hooks of a stopped server have the shutdown timeout to end.
func TestADrainWaitsForItsHooks(t *testing.T) {
	inWorld(t, func(w *world) {
		var l hookLog
		n := w.start(each(failEach), burying(&l, time.Second))
		w.sleep(poll)
		w.pushEach(10)
		w.sleep(100 * time.Millisecond)
		n.stop()
		if l.calls() != 10 || l.now != 0 || len(l.causes) != 0 {
			w.Errorf("%d hooks were called, %d run, and %d were cut off; want 10, 0 and 0",
				l.calls(), l.now, len(l.causes))
		}
	})
}

func TestAHookThatFailsStopsNoOther(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":  func() error { return errors.New("boom") },
		"panic":  func() error { panic("boom") },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var l hookLog
				n := w.start(each(failEach), func(s *setup) {
					s.queue.Policy.MaxRetries = 0
					s.Buried = func(context.Context, report.Buried) error {
						l.begin()
						defer l.end(nil)
						return fail()
					}
				})

				w.sleep(poll)
				w.pushEach(20)
				w.sleep(poll)
				n.stop()

				if l.calls() != 20 {
					w.Errorf("%d hooks were called, want 20", l.calls())
				}
				if got := n.log.count("msg=\"OnBuried failed"); got != 10 ||
					len(n.log.lines("more calls of OnBuried failed", "count=10")) != 1 {
					w.Errorf("%d failures of the hook are logged, want 10, and a line that counts the others", got)
				}
			})
		})
	}
}

func TestTheHookIsCalledHoweverManyBurialsThereWere(t *testing.T) {
	inWorld(t, func(w *world) {
		calls := &hookLog{}
		w.start(each(fails), burying(calls, time.Millisecond))
		w.sleep(poll)
		for i := range 10 {
			w.push(fmt.Sprintf("job-%d", i), "x")
			w.sleep(poll)
			if got := calls.calls(); got != i+1 {
				w.Fatalf("the hook was called %d times for %d burials", got, i+1)
			}
		}
	})
}
