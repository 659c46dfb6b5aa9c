package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// hanging is a store with a call, by its name, that does not answer before its caller gives up. It
// may also be all calls, or "all but Stats", which then answer late and without a shard, as when a
// Cluster's master that has the lists hangs.
type hanging struct {
	*memory.Store
	call string
}

// hangs answers only once ctx ends, if it is the call that does.
func hangs[R any](ctx context.Context, s *hanging, call string, answer func() (R, error)) (R, error) {
	if s.call == call || s.call == "all" || s.call == "all but Stats" && call != "Stats" && call != "Queues" {
		<-ctx.Done()
		var none R
		return none, ctx.Err()
	}
	return answer()
}

func (s *hanging) Queues(ctx context.Context) ([]ports.Queue, error) {
	return hangs(ctx, s, "Queues", func() ([]ports.Queue, error) { return s.Store.Queues(ctx) })
}

func (s *hanging) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	return hangs(ctx, s, "Stats", func() ([]ports.QueueStats, error) {
		stats, err := s.Store.Stats(ctx, r)
		if s.call == "all but Stats" {
			time.Sleep(400 * time.Millisecond)
			stats[0].Unreached, stats[0].Shards = []core.Shard{stats[0].Shards[0].Shard}, stats[0].Shards[1:]
		}
		return stats, err
	})
}

func (s *hanging) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	return hangs(ctx, s, "History", func() (ports.HistoryReply, error) { return s.Store.History(ctx, r) })
}

func (s *hanging) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return hangs(ctx, s, "Jobs", func() (ports.JobsPage, error) { return s.Store.Jobs(ctx, r) })
}

func (s *hanging) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	return hangs(ctx, s, "Claimed", func() (ports.ClaimedPage, error) { return s.Store.Claimed(ctx, r) })
}

func (s *hanging) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	return hangs(ctx, s, "Morgue", func() (ports.MorguePage, error) { return s.Store.Morgue(ctx, r) })
}

func (s *hanging) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	return hangs(ctx, s, "Groups", func() (ports.GroupsReply, error) { return s.Store.Groups(ctx, r) })
}

func (s *hanging) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	return hangs(ctx, s, "Find", func() (ports.Found, error) { return s.Store.Find(ctx, r) })
}

func (s *hanging) Nodes(ctx context.Context) (ports.NodesReply, error) {
	return hangs(ctx, s, "Nodes", func() (ports.NodesReply, error) { return s.Store.Nodes(ctx) })
}

func (s *hanging) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	return hangs(ctx, s, "Quarantined", func() (ports.QuarantinePage, error) { return s.Store.Quarantined(ctx, r) })
}

func (s *hanging) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	return hangs(ctx, s, "QuarantinedShards", func() (ports.QuarantinedShards, error) {
		return s.Store.QuarantinedShards(ctx, r)
	})
}

func (s *hanging) Check(ctx context.Context) ([]ports.Check, error) {
	return hangs(ctx, s, "Check", func() ([]ports.Check, error) { return nil, nil })
}

func (s *hanging) Pause(ctx context.Context, queue string) error {
	_, err := hangs(ctx, s, "Pause", func() (struct{}, error) { return struct{}{}, s.Store.Pause(ctx, queue) })
	return err
}

// newHanging returns a dashboard of a store in which each page has something to ask for.
func newHanging(t *testing.T) (*hanging, *Dashboard) {
	t.Helper()
	s := &hanging{Store: memory.New(memory.Options{})}
	board, err := New(inspect.New(s, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, store: &faulty{Store: s.Store}, board: board, turns: map[core.Shard]*ports.TurnRequest{}}
	h.declare("orders", houseShards)
	for _, queue := range []string{"b", "c", "d"} {
		h.declare(queue, 1)
		h.push(queue, "runs", 0, "p")
		h.turn(queue, 0, 9)
	}
	h.ended(core.Buried, "boom", "dead")
	h.push("orders", "runs", 0, "p")
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	h.push("orders", "a", 0, "p")
	return s, board
}

// timed returns the answer of a page, and how long it took.
func timed(board *Dashboard, r *http.Request) (*httptest.ResponseRecorder, time.Duration) {
	began := time.Now()
	w := answerOf(board, r)
	return w, time.Since(began)
}

// Whichever call of the store does not answer, each page does, within the time that a browser's
// script waits.
func TestAStoreThatHangs(t *testing.T) {
	const most = pageTime
	calls := []string{
		"Queues", "Stats", "History", "Jobs", "Claimed", "Morgue", "Groups", "Find", "Nodes", "Quarantined",
		"QuarantinedShards", "Check", "Pause", "Actions", "Audit", "all",
	}
	for _, call := range calls {
		for _, known := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s, board := newHanging(t)
				if known {
					answerOf(board, request(http.MethodGet, "/", nil))
				}
				s.call = call
				for _, route := range table() {
					board.looker.acted()
					r := sampled(t, &route)
					if route.path == "busy" {
						r = request(http.MethodGet, "/busy", nil)
					}
					w, took := timed(board, r)
					if took > most && route.method == http.MethodGet || took > 15*time.Second {
						t.Errorf("%s without an answer to %s, known %v: %v", route.path, call, known, took)
					}
					if w.Code >= 400 && !strings.Contains(w.Body.String(), "<h1>") {
						t.Errorf("%s without an answer to %s: status %d: %s", route.path, call, w.Code, w.Body)
					}
					if slices.Contains([]string{"History", "Check", "Nodes", "Morgue"}, call) && route.path == "{$}" &&
						w.Code != http.StatusOK {
						t.Errorf("the overview needs %s: status %d", call, w.Code)
					}
				}
			})
		}
	}
}

// While one request waits for the store, others are shown the previous result, at once.
func TestOneWaitsForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, board := newHanging(t)
		answerOf(board, request(http.MethodGet, "/", nil))
		s.call = "all"
		time.Sleep(maxRest)
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- answerOf(board, request(http.MethodGet, "/", nil)) }()
		synctest.Wait()
		for _, target := range []string{"/", "/queue?q=orders", "/nodes", "/store"} {
			if w, took := timed(board, request(http.MethodGet, target, nil)); took > 0 || w.Code != http.StatusOK {
				t.Errorf("%s: status %d after %v", target, w.Code, took)
			}
		}
		says(t, (<-first).Body.String(), "The store does not answer", "orders")
	})
}

// The overview shows within 5 s that a part of the store can't be reached, even if that part has
// the lists of servers and histories, and shows the rest.
func TestAPartThatHangsIsSaidSoon(t *testing.T) {
	const soon, polled = 5 * time.Second, minRest
	for before := range 8 { // how often somebody has looked: some looks ask for more than others
		for _, phase := range []time.Duration{time.Millisecond, polled / 2, polled - time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				s, board := newHanging(t)
				page := ""
				poll := func() bool {
					page = answerOf(board, request(http.MethodGet, "/", nil)).Body.String()
					return strings.Contains(page, "be reached")
				}
				for n := range before {
					if poll() {
						t.Fatalf("before it hangs: %s", words(page))
					}
					if n == before-1 {
						time.Sleep(phase)
					} else {
						time.Sleep(polled)
					}
				}
				s.call = "all but Stats"
				began := time.Now()
				if before > 0 {
					time.Sleep(polled - phase)
				}
				for !poll() && time.Since(began) < time.Minute {
					time.Sleep(polled)
				}
				if took := time.Since(began); took > soon {
					t.Errorf("after %d looks, %v behind the last: it is said after %v", before, phase, took)
				}
				says(t, page, "Shard 0 can't be reached; the figures don't include it", "orders", "Oldest due job", "Waiting")
			})
		}
	}
}
