package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// checkedStore is a store whose server has a setting to correct.
type checkedStore struct {
	notifyingLink
	err error
}

func (c checkedStore) Check(context.Context) ([]ports.Check, error) {
	return []ports.Check{
		{Name: "answers", Value: "yes"},
		{Name: "version", Status: ports.CheckUnknown, Value: "no right", Advice: "look yourself"},
		{Name: "policy", Server: "h:1", Status: ports.CheckWarn, Value: "volatile-lru", Advice: "set it to noeviction"},
		{Name: "aof", Server: "h:1", Status: ports.CheckFail, Value: "no", Advice: "switch it on"},
		{Name: "aof", Server: "h:2", Status: ports.CheckFail, Value: "no", Advice: "switch it on"},
	}, c.err
}

func (checkedStore) String() string { return "store h:1" }

// However much is wrong, it is one line.
func TestWhatIsWrongWithTheServerIsSaidOnceAtTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), func(s *setup) {
			s.wrap = func(l notifyingLink) engine.Store { return checkedStore{notifyingLink: l} }
		})
		w.sleep(10 * time.Minute)
		n.wantLines(1, "level=WARN", "needs attention", `check="policy, aof" server="h:1, h:2"`,
			`value="policy: volatile-lru (h:1); aof: no (h:1); aof: no (h:2)" `+
				`advice="set it to noeviction; switch it on"`)
		n.wantLines(1, "level=WARN")
		n.wantLines(1, "server started", "store=\"store h:1\"")
	})
}

func TestAServerThatCannotBeCheckedIsNoWarning(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), func(s *setup) {
			s.wrap = func(l notifyingLink) engine.Store { return checkedStore{l, errors.New("no answer")} }
		})
		w.sleep(time.Minute)
		n.wantLines(0, "level=WARN")
		n.wantLines(1, "level=DEBUG", "the store can't be checked", "no answer")
	})
}

// A server whose merge rule an operator has replaced logs that once, and again after another
// change.
func TestAChangedMergeRuleIsLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		set := func(rule core.MergeRule) {
			if err := w.store.SetMerge(w.Context(), ports.SetMergeRequest{Queue: queueName, Merge: rule}); err != nil {
				w.Fatal(err)
			}
		}
		w.sleep(5 * time.Minute)
		n.wantLines(0, "merge rule")
		newest, union := core.MergeRule{Stays: core.Highest}, core.MergeRule{}
		for _, step := range []struct {
			rule  core.MergeRule
			lines int
		}{{newest, 1}, {union, 1}, {newest, 2}} {
			set(step.rule)
			w.sleep(5 * time.Minute)
			n.wantLines(step.lines, "level=WARN",
				"the merge rule of a queue was changed", "queue=orders rule=newest own=union")
		}
	})
}

// A clock that differs from the store's is one line an hour, and is announced. The store in this
// process has no clock of its own.
func TestAClockThatDiffersFromTheStoresIsLogged(t *testing.T) {
	for _, tt := range []struct {
		off    time.Duration // of the store's clock
		remote bool
		lines  int
		says   string
	}{
		{-10 * time.Minute, true, 3, "the clock of this process is 10m0s ahead of the store's"},
		{time.Second, true, 3, "the clock of this process is 1s behind the store's"},
		{999 * time.Millisecond, true, 0, ""},
		{-10 * time.Minute, false, 0, ""},
	} {
		t.Run(fmt.Sprint(tt.off, tt.remote), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.store = memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(tt.off) }})
				n := w.start(each(succeed), spread, func(s *setup) {
					if tt.remote {
						s.wrap = func(l notifyingLink) engine.Store { return checkedStore{l, errors.New("no answer")} }
					}
				})

				w.sleep(2*time.Hour + time.Minute)
				n.wantLines(tt.lines, "level=WARN", "needs attention", "check=clocks", tt.says)
				n.wantLines(tt.lines, "level=WARN")
				if got, _ := w.announced(n); got.Status.ClockAhead != -tt.off {
					t.Errorf("the clock is announced as %v ahead, want %v", got.Status.ClockAhead, -tt.off)
				}
			})
		})
	}
}

// A server that was never refused the shard does not know its last owner, and logs no empty name.
func TestATakeOverFromAnUnknownServerNamesNone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.acquireFor(ttl, "ghost")
		w.sleep(3 * ttl)
		n := w.start(each(succeed))
		w.sleep(3 * ttl)
		n.wantLines(1, "lease taken over", "level=INFO", "jobs=1")
		n.wantLines(1, "job recovered", "level=WARN")
		n.wantLines(0, "from_node")
	})
}

// A server that takes over a dead server's shard logs that server's name, if the shard was refused
// to it before.
func TestWhatIsTakenOverNamesTheServer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.acquireFor(ttl, "ghost")
		n := w.start(each(succeed))
		w.sleep(3 * ttl)
		n.wantLines(1, "lease taken over", "level=INFO", "jobs=1", "from_node=ghost")
		n.wantLines(1, "job recovered", "level=WARN", "id=job", "recoveries=1", "from_node=ghost")
	})
}

// acquireFor lets an owner that is no node of the test claim a job, and die.
func (w *world) acquireFor(ttl time.Duration, owner string) {
	w.Helper()
	w.push("job", "x")
	lease, err := w.store.Acquire(context.Background(), ports.AcquireRequest{
		Shard: shardOfQueue(0), Shards: 1, Generation: 1, Owner: owner, Attempt: 1, TTL: ttl,
	})
	if err != nil {
		w.Fatal(err)
	}
	reply, err := w.store.Turn(context.Background(), ports.TurnRequest{
		Lease: ports.Lease{Shard: shardOfQueue(0), Owner: owner, Token: lease.Token}, Number: 1, TTL: ttl, Want: 1,
	})
	if err != nil || len(reply.Claims) != 1 {
		w.Fatalf("%d claims, %v", len(reply.Claims), err)
	}
}

// The last line of a server counts the jobs that it settled, and those that it put back because it
// stopped: claimed ones that had not started too.
func TestTheLastLineCountsWhatWasPutBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(each(func(ctx context.Context, c *core.Claim) error {
			if c.ID == "slow" {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Millisecond)
			return nil
		}), lanes(1), func(s *setup) { s.ShutdownTimeout = time.Second })
		w.sleep(poll)
		w.pushEach(100) // teaches the node to claim ahead
		w.push("slow", "x")
		for _, id := range []string{"x", "y", "z"} {
			w.push(id, "x")
		}
		w.sleep(poll / 2)
		if s := w.stats(); s.Claimed != 4 || s.Processed != 100 {
			w.Fatalf("%d jobs are claimed and %d done, want 4 and 100", s.Claimed, s.Processed)
		}
		n.stop()
		n.wantLines(1, "server stopped", "settled=100", "put_back=4")
		w.wantCounts(4, 0, 100, 0)
	})
}
