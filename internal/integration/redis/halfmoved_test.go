package redis_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// TestRedisHalfMovedSlot runs every script on both servers of a slot that is half
// moved, with each one of its keys on the other server. A script that misses a key
// must fail before its first write and read nothing wrong: all is as it was, or as
// after the call on a server that has all keys.
func TestRedisHalfMovedSlot(t *testing.T) {
	tier.Long(t, "waits for slots to move")
	t.Parallel()
	client := testservers.OwnRedisCluster(t).(*goredis.ClusterClient)
	for _, call := range scriptCalls() {
		if call.script == "next_ticks" {
			continue // a Cluster asks each shard by itself
		}
		t.Run(call.name, func(t *testing.T) {
			h := newHalfMoved(t, client, call)
			for _, missing := range append([]string{""}, h.keys()...) {
				h.try(missing, false)
				// A call is sent to the new server when the old one has none of its KEYS.
				if !slices.Contains(h.call, any(missing)) {
					h.try(missing, true)
				}
			}
		})
	}
}

// halfMoved is a slot with one key on another server than the rest.
type halfMoved struct {
	t        *testing.T
	slot     int
	from, to *slotServer
	call     []any
	// dumps and before are the slot's keys before the call, after is its keys after the call, and
	// reply is the reply. blind is the reply of a renewal that can't look; it is nil for other
	// calls.
	dumps         map[string]string
	before, after contents
	reply, blind  []string
}

// contents are the keys of a slot with their values.
type contents map[string]any

// newHalfMoved makes the call, and runs its script once more where all keys are.
func newHalfMoved(t *testing.T, client *goredis.ClusterClient, call scriptCall) *halfMoved {
	t.Helper()
	h := &halfMoved{t: t}
	must(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *goredis.Client) error {
		return node.FlushAll(ctx).Err()
	}))
	recorder := recordScript(t, call.script)
	own := goredis.NewClusterClient(client.Options())
	t.Cleanup(func() { own.Close() })
	own.OnNewNode(func(node *goredis.Client) { node.AddHook(recorder) }) // a check asks each server by itself
	w := newWorker(t, own, call.filled)
	w.prepare(call)
	recorder.forget()
	must(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *goredis.Client) error {
		return node.ScriptFlush(ctx).Err()
	}))

	h.findServers(client, w.shardKey(call))
	h.dumps, h.before = h.from.dump(t, h.slot), h.from.read(t, h.slot)
	must(t, call.do(w))
	if h.call = recorder.last(); h.call == nil {
		t.Fatalf("the call did not run the script %s", call.script)
	}
	h.from.put(t, nil)
	h.from.put(t, h.dumps)
	reply, err := h.from.do(t.Context(), h.call...)
	must(t, err)
	h.after, h.reply = h.from.read(t, h.slot), leaves(reply)
	if call.script == "renew" {
		ok, now, remaining := reply.([]any)[0], reply.([]any)[1], reply.([]any)[2]
		h.blind = leaves([]any{ok, now, remaining, int64(0), now})
	}
	return h
}

// shardKey is a key of the slot that a call concerns.
func (w *worker) shardKey(call scriptCall) string {
	switch call.script {
	case "declare", "declared", "alter", "configure", "rights", "forget", "identify":
		return "skein:queues"
	case "forget_shard":
		return "skein:{other/0}:m"
	case "permit", "take", "stop", "limits":
		return "skein:{orders}:permits"
	case "announce", "drain", "retire", "nodes", "audit", "actions":
		return "skein:{/nodes}:n"
	}
	return "skein:{orders/0}:m"
}

// findServers finds the slot's server and another one.
func (h *halfMoved) findServers(client goredis.UniversalClient, key string) {
	h.t.Helper()
	ctx := h.t.Context()
	slot, err := client.ClusterKeySlot(ctx, key).Result()
	must(h.t, err)
	h.slot = int(slot)
	ranges, err := client.ClusterSlots(ctx).Result()
	must(h.t, err)
	for _, r := range ranges {
		s := &slotServer{id: r.Nodes[0].ID, client: goredis.NewClient(&goredis.Options{Addr: r.Nodes[0].Addr})}
		h.t.Cleanup(func() { s.client.Close() })
		if r.Start <= h.slot && h.slot <= r.End {
			h.from = s
		} else {
			h.to = s
		}
	}
	h.t.Cleanup(func() { h.flag("STABLE") })
}

// flag sets the state of the slot on both servers.
func (h *halfMoved) flag(state string) {
	h.t.Helper()
	from, to := []any{"cluster", "setslot", h.slot, state}, []any{"cluster", "setslot", h.slot, state}
	if state == "MOVING" {
		from, to = append(from[:3], "MIGRATING", h.to.id), append(to[:3], "IMPORTING", h.from.id)
	}
	must(h.t, h.to.client.Do(context.Background(), to...).Err())
	must(h.t, h.from.client.Do(context.Background(), from...).Err())
}

func (h *halfMoved) keys() []string {
	var keys []string
	for key := range h.before {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// try runs the script with one key missing: on the server to which the slot moves if there is true,
// and otherwise on the server from which it moves.
func (h *halfMoved) try(missing string, there bool) {
	h.t.Helper()
	where := map[bool]string{false: "the old server without ", true: "the new server without "}[there] + missing
	at, other := h.from, h.to
	if there {
		at, other = h.to, h.from
	}
	h.flag("STABLE")
	h.from.put(h.t, nil)
	h.to.put(h.t, nil)
	all, one := map[string]string{}, map[string]string{}
	for key, dump := range h.dumps {
		if key == missing {
			one[key] = dump
		} else {
			all[key] = dump
		}
	}
	h.place(at, all)
	h.place(other, one)
	h.flag("MOVING")

	reply, err := at.do(h.t.Context(), h.call...)
	got := h.from.read(h.t, h.slot)
	for key, value := range h.to.read(h.t, h.slot) {
		if _, twice := got[key]; twice {
			h.t.Errorf("on %s: %s is on both servers", where, key)
		}
		got[key] = value
	}
	if err != nil {
		if diff := cmp.Diff(h.before, got); diff != "" {
			h.t.Errorf("on %s: the script failed with %v and has changed (-before +after):\n%s", where, err, diff)
		}
		if text := err.Error(); !strings.HasPrefix(text, "TRYAGAIN") && !strings.HasPrefix(text, "ASK") &&
			!strings.Contains(text, "non local key") {
			h.t.Errorf("on %s: the script failed with %v, which no client repeats", where, err)
		}
		return
	}
	if diff := cmp.Diff(h.after, got); diff != "" {
		h.t.Errorf("on %s: the script has written other values than on a server with all keys (-with all +here):\n%s",
			where, diff)
	}
	if missing != "" && slices.Equal(h.blind, leaves(reply)) {
		return
	}
	if diff := cmp.Diff(h.reply, leaves(reply)); diff != "" {
		h.t.Errorf("on %s: the script has returned another reply than on a server with all keys (-with all +here):\n%s",
			where, diff)
	}
}

// place stores keys, on the new server while it is importing the slot.
func (h *halfMoved) place(s *slotServer, dumps map[string]string) {
	h.t.Helper()
	if s == h.to {
		must(h.t, h.to.client.Do(h.t.Context(), "cluster", "setslot", h.slot, "IMPORTING", h.from.id).Err())
	}
	s.put(h.t, dumps)
}
