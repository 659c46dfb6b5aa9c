package integration_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// pushGate is a hook of a client that holds pushes up, each exchange of them, until it is opened.
type pushGate struct {
	open chan struct{}
	// arrived has the context of each exchange that waits, and what it carries.
	arrived chan heldPush
}

type heldPush struct {
	ctx  context.Context
	text string
}

func newPushGate(client goredis.UniversalClient) *pushGate {
	g := &pushGate{open: make(chan struct{}), arrived: make(chan heldPush, 100)}
	client.AddHook(g)
	return g
}

// pass waits if the commands are pushes: those with an id that begins so.
func (g *pushGate) pass(ctx context.Context, cmds ...goredis.Cmder) {
	var text strings.Builder
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			if id, ok := arg.(string); ok && strings.HasPrefix(id, "held-") {
				text.WriteString(id + " ")
			}
		}
	}
	if text.Len() > 0 {
		g.arrived <- heldPush{ctx, text.String()}
		<-g.open
	}
}

func (g *pushGate) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (g *pushGate) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		g.pass(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (g *pushGate) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		g.pass(ctx, cmds...)
		return next(ctx, cmds)
	}
}

// Small pushes that come while others are under way go together, by a deadline that is no caller's: one
// that gives up ends nothing for the others. A push of many bytes or entries neither waits for them nor goes with them.
func TestRedisGathersSmallPushesOnly(t *testing.T) {
	t.Parallel()
	client := testservers.Redis(t)
	store := redis.New(client, redis.Options{Prefix: testservers.Prefix(t, client)})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	push := func(ctx context.Context, id string, entries, size int) error {
		r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
		for range entries {
			r.Entries = append(r.Entries, core.Entry{ID: id, Payload: core.Payload{Data: make([]byte, size)}})
		}
		_, err := store.Push(ctx, r)
		return err
	}
	must(t, push(t.Context(), "first", 1, 0)) // so that the server knows the script
	gate := newPushGate(client)
	release := sync.OnceFunc(func() { close(gate.open) })
	defer release()
	next := func() heldPush {
		t.Helper()
		select {
		case h := <-gate.arrived:
			return h
		case <-time.After(testservers.Patience):
			t.Fatal("no push was sent")
		}
		return heldPush{}
	}

	const senders = 4 // that may be under way at once
	callers, giveUp := context.WithCancel(t.Context())
	var given, kept sync.WaitGroup
	var sending []context.Context
	for range senders { // one after another, or some go together
		given.Go(func() {
			if err := push(callers, "held-given-up", 1, 0); err == nil {
				t.Error("a push whose caller has given up was answered")
			}
		})
		sending = append(sending, next().ctx)
	}
	given.Go(func() { _ = push(callers, "held-unsent", 1, 0) }) // waits for them, and gives up
	for _, id := range []string{"held-a", "held-b", "held-c"} {
		kept.Go(func() {
			if err := push(t.Context(), id, 1, 64<<10-100); err != nil {
				t.Errorf("a push beside others whose callers have given up: %v", err)
			}
		})
	}
	for _, large := range []struct {
		id            string
		entries, size int
	}{{"held-large", 1, 64 << 10}, {"held-many", 17, 0}} {
		kept.Go(func() {
			if err := push(t.Context(), large.id, large.entries, large.size); err != nil {
				t.Errorf("%s: %v", large.id, err)
			}
		})
		if got := strings.Fields(next().text); got[0] != large.id || len(got) != large.entries {
			t.Errorf("sent beside what is held up: %v, want only %s", got, large.id)
		}
	}
	giveUp()
	given.Wait()
	for _, ctx := range sending {
		if until, ok := ctx.Deadline(); ctx.Err() != nil || !ok || time.Until(until) > 10*time.Second {
			t.Errorf("small pushes are sent until %v (%v), want a deadline of the sender's within 10 s", until, ctx.Err())
		}
	}
	release()
	kept.Wait()
	if found, err := store.Find(t.Context(), "orders", "held-unsent"); err != nil || found.Queued != nil {
		t.Errorf("a push whose caller gave up before it was sent is stored: %+v (%v)", found.Queued, err)
	}
}
