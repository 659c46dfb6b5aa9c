package redis_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// pushGate is a hook of a client that holds each exchange of pushes up until the gate is opened.
type pushGate struct {
	open chan struct{}
	// arrived receives each exchange that waits.
	arrived chan heldPush
}

// heldPush is an exchange of pushes: its context, whether that had a deadline when the exchange
// arrived, and the ids of the pushes.
type heldPush struct {
	ctx      context.Context
	deadline bool
	text     string
}

func newPushGate(client goredis.UniversalClient) *pushGate {
	g := &pushGate{open: make(chan struct{}), arrived: make(chan heldPush, 100)}
	client.AddHook(g)
	return g
}

// pass waits if a command has an id that begins with "held-".
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
		_, deadline := ctx.Deadline()
		g.arrived <- heldPush{ctx, deadline, text.String()}
		<-g.open
	}
}

// next returns the next exchange that waits.
func (g *pushGate) next(t *testing.T) heldPush {
	t.Helper()
	select {
	case h := <-g.arrived:
		return h
	case <-time.After(testservers.Patience):
		t.Fatal("no push was sent")
	}
	return heldPush{}
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

// gathering is a store whose pushes with ids that begin with "held-" wait at a gate.
type gathering struct {
	*testing.T
	store *redis.Store
	gate  *pushGate
}

func newGathering(t *testing.T) *gathering {
	t.Helper()
	client := testservers.Redis(t)
	return newGatheringOf(t, client, testservers.Prefix(t, client))
}

func newGatheringOf(t *testing.T, client goredis.UniversalClient, prefix string) *gathering {
	t.Helper()
	g := &gathering{T: t, store: redis.New(client, redis.Options{Prefix: prefix})}
	_, err := g.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	must(t, g.push(t.Context(), "first", 1, 0)) // so that the server knows the script
	g.gate = newPushGate(client)
	return g
}

// push pushes payloads of the given size to a job.
func (g *gathering) push(ctx context.Context, id string, payloads, size int) error {
	r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
	for range payloads {
		r.Entries = append(r.Entries, core.Entry{ID: id, Payload: core.Payload{Data: make([]byte, size)}})
	}
	_, err := g.store.Push(ctx, r)
	return err
}

// pushes pushes in the background. The push must succeed.
func (g *gathering) pushes(pushing *sync.WaitGroup, id string, payloads, size int) {
	pushing.Go(func() {
		if err := g.push(g.Context(), id, payloads, size); err != nil {
			g.Errorf("%s, beside others whose callers have given up: %v", id, err)
		}
	})
}

// occupy makes as many exchanges of small pushes as may be under way at once.
func (g *gathering) occupy(callers context.Context, pushing *sync.WaitGroup) (sending []heldPush) {
	g.Helper()
	for range gatherSenders {
		pushing.Go(func() {
			if err := g.push(callers, "held-given-up", 1, 0); err == nil {
				g.Error("a push whose caller has given up was answered")
			}
		})
		sending = append(sending, g.gate.next(g.T))
	}
	return sending
}

const (
	// gatherSenders is how many exchanges of small pushes may be under way at once.
	gatherSenders = 4
	// gatherBytes is the number of bytes from which a push is not small.
	gatherBytes = 16 << 10
)

// Small pushes that come while others are under way go together. Their deadline is the exchange's
// and not a caller's. A push of many bytes or entries neither waits for them nor goes with them.
func TestRedisGathersSmallPushesOnly(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	release := sync.OnceFunc(func() { close(g.gate.open) })
	defer release()
	callers, giveUp := context.WithCancel(t.Context()) // it has no deadline
	var given, kept sync.WaitGroup
	for _, h := range g.occupy(callers, &given) {
		if h.deadline {
			t.Error("a push that goes alone has another context than its caller's")
		}
	}
	given.Go(func() { _ = g.push(callers, "held-unsent", 1, 0) }) // waits for them, and gives up
	for _, id := range []string{"held-a", "held-b", "held-c"} {
		g.pushes(&kept, id, 1, gatherBytes-100)
	}
	for _, large := range []struct {
		id             string
		payloads, size int
	}{{"held-large", 1, gatherBytes}, {"held-many", 17, 0}} {
		g.pushes(&kept, large.id, large.payloads, large.size)
		if got := strings.Fields(g.gate.next(t).text); got[0] != large.id || len(got) != large.payloads {
			t.Errorf("sent beside what is held up: %v, want only %s", got, large.id)
		}
	}
	giveUp()
	given.Wait()
	for sent := 0; sent < 3; {
		h := g.gate.next(t)
		ids := strings.Fields(h.text)
		if slices.Contains(ids, "held-unsent") {
			t.Error("a push whose caller gave up while it waited was sent")
		}
		if len(ids) > 1 && !h.deadline {
			t.Errorf("%v are sent without a deadline", ids)
		}
		sent += len(ids)
	}
	release()
	kept.Wait()
	if found, err := g.store.Find(t.Context(), ports.FindRequest{
		Queue: "orders", ID: "held-unsent", Payloads: 1000,
	}); err != nil || found.Queued != nil {
		t.Errorf("a push whose caller gave up before it was sent is stored: %+v (%v)", found.Queued, err)
	}
}

// A connection that is lost under pushes that went together fails each of them with an unknown
// outcome, and no others. The exchange is not sent again. Each of their callers may push again:
// stored entries merge.
func TestRedisALostConnectionFailsThePushesOfItsExchange(t *testing.T) {
	t.Parallel()
	server := testservers.OwnRedis(t)
	for round := range 100 {
		if together := lostTogether(t, server, fmt.Sprintf("round-%d:", round)); together > 1 {
			return
		}
	}
	t.Error("in 100 rounds no two pushes went together")
}

// lostTogether has ten callers push at once, loses the connection of one of them, and returns how
// many went with it.
func lostTogether(t *testing.T, server goredis.UniversalClient, prefix string) int {
	t.Helper()
	link := &lossyLink{fault: io.EOF}
	g := newGatheringOf(t, link.open(t, server), prefix)
	var pushing sync.WaitGroup
	for n := range gatherSenders { // so that the others wait for each other
		g.pushes(&pushing, fmt.Sprintf("held-before-%d", n), 1, 0)
		g.gate.next(t)
	}
	const callers = 10
	link.lose("held-together-0")
	var failed [callers]error
	for n := range callers {
		pushing.Go(func() { failed[n] = g.push(t.Context(), fmt.Sprintf("held-together-%d", n), 1, 0) })
	}
	close(g.gate.open)
	pushing.Wait()
	var together []string
	for len(g.gate.arrived) > 0 {
		if ids := strings.Fields((<-g.gate.arrived).text); slices.Contains(ids, "held-together-0") {
			together = append(together, ids...)
		}
	}
	if n := link.sent(); n != 1 {
		t.Errorf("the exchange whose connection was lost was sent %d times", n)
	}
	link.lose("held-by-nobody")
	for n, err := range failed {
		id := fmt.Sprintf("held-together-%d", n)
		if lost := slices.Contains(together, id); lost != (err != nil) || lost && storekit.HasKnownOutcome(err) {
			t.Errorf("%s, which went with %v, gave %v; want an error of unknown outcome for those alone",
				id, together, err)
		}
		must(t, g.push(t.Context(), id, 1, 0))
		found, err := g.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: id, Payloads: 1000})
		must(t, err)
		if found.Queued == nil || len(found.Queued.Payloads) != 1 {
			t.Errorf("pushed again, %s is %+v; want one payload", id, found.Queued)
		}
	}
	return len(together)
}

// TestRedisPushesOfManyGoroutines checks that pushes from many goroutines are all stored, except those
// whose callers have given up. That they share exchanges is tested in pushtogether_test.go.
func TestRedisPushesOfManyGoroutines(t *testing.T) {
	t.Parallel()
	const goroutines, each = 32, 200
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 5}); err != nil {
		t.Fatal(err)
	}
	gaveUp, giveUp := context.WithCancel(t.Context())
	giveUp()
	var pushing sync.WaitGroup
	for g := range goroutines {
		pushing.Go(func() {
			for i := range each {
				push := ports.PushRequest{Queue: "orders", Shards: 5, Generation: 1, Entries: []core.Entry{
					{ID: fmt.Sprintf("order-%d-%d", g, i), Payload: core.Payload{Data: []byte("paid")}},
				}}
				if _, err := store.Push(t.Context(), push); err != nil {
					t.Errorf("push: %v", err)
				}
				push.Entries[0].ID += "-given-up"
				if _, err := store.Push(gaveUp, push); err == nil {
					t.Error("a push whose context had ended was stored")
				}
			}
		})
	}
	pushing.Wait()

	stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := stats[0].Fresh; got != goroutines*each {
		t.Errorf("%d jobs are stored, want %d", got, goroutines*each)
	}
}

// A push that breaks its connection fails alone: others that come at the same time are stored.
func TestRedisPushThatBreaksItsConnectionFailsAlone(t *testing.T) {
	t.Parallel()
	const goroutines, each = 16, 100
	client := testservers.OwnRedis(t, "--client-query-buffer-limit", "1mb") // a longer command ends its connection
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	push := func(id string, size int) error {
		_, err := store.Push(t.Context(), ports.PushRequest{
			Queue:      "orders",
			Shards:     1,
			Generation: 1,
			Entries: []core.Entry{
				{ID: id, Payload: core.Payload{Data: make([]byte, size)}},
			},
		})
		return err
	}
	small, large := new(sync.WaitGroup), new(sync.WaitGroup)
	ended := make(chan struct{})
	for g := range goroutines {
		small.Go(func() {
			for i := range each {
				if err := push(fmt.Sprint(g, "-", i), 100); err != nil {
					t.Errorf("a small push beside one that is too large: %v", err)
				}
			}
		})
	}
	broken := 0
	large.Go(func() {
		for {
			if err := push("large", 2<<20); err == nil {
				t.Error("a payload of 2 MiB was stored")
			}
			broken++
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	small.Wait()
	close(ended)
	large.Wait()
	t.Logf("%d pushes broke their connections", broken)
}
