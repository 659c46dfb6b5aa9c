package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/wrong"
)

// The part of a snapshot that a user sees has his queues, and of servers, shards and faults those of
// his queues. He sees that the store is silent, but no fault of the store or of a server.
func TestASnapshotIsCutToTheUsersQueues(t *testing.T) {
	stats := func(queue string) inspect.QueueStats {
		return inspect.QueueStats{Queue: inspect.Queue{Name: queue}}
	}
	whole := &snapshot{
		view: wrong.View{
			Stats: []inspect.QueueStats{stats("orders"), stats("secrets")},
			Nodes: []inspect.Node{
				{Name: "both", Queues: []string{"secrets", "orders"}},
				{Name: "other", Queues: []string{"secrets"}},
				{Name: "none"},
			},
			Unreached: []core.Shard{{Queue: "orders", Index: 1}, {Queue: "secrets", Index: 2}},
		},
		wrong: []wrong.Line{
			{Kind: wrong.NoAnswer, Text: "silent"},
			{Kind: wrong.CheckFails, Text: "check"},
			{Kind: wrong.NobodyServes, Text: "both", Parts: []wrong.Line{
				{Queue: "orders", Text: "part"}, {Queue: "secrets", Text: "other part"},
			}},
			{Kind: wrong.Late, Queue: "secrets", Text: "other"},
			{Kind: wrong.Late, Queue: "orders", Text: "late"},
			{Kind: wrong.ServerGone, Server: "other", Text: "gone"},
		},
	}

	some := &sight{queues: map[string]bool{"orders": true, "secrets": false}}
	part := some.of(whole)
	var got []string
	for at := range part.view.Stats {
		got = append(got, part.view.Stats[at].Queue.Name)
	}
	for at := range part.view.Nodes {
		got = append(got, part.view.Nodes[at].Name)
	}
	for _, s := range part.view.Unreached {
		got = append(got, s.String())
	}
	for at := range part.wrong {
		got = append(got, part.wrong[at].Text)
	}
	if text := fmt.Sprint(got, part.some); text != "[orders both orders/1 The store does not answer part late] true" {
		t.Errorf("he sees %s", text)
	}

	if len(whole.view.Stats) != 2 || len(whole.wrong) != 6 || whole.some {
		t.Errorf("the whole has changed: %+v", whole)
	}
	if all := (&sight{all: true}).of(whole); all != whole {
		t.Error("who may see all sees a part")
	}
	if some.of(nil) != nil {
		t.Error("there is a part of no snapshot")
	}
}

// A user of one queue may be the first who looks at the store.
func TestTheFirstPageMayBeOfOneQueue(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	h.push("orders", "a", 0, "p")
	says(t, h.get("/id?q=orders&id=a"), "a", "orders")
}

// A page that can't be about some queues is refused as a whole: it names none of them.
func TestAPageOfAllIsRefusedToAUserOfOneQueue(t *testing.T) {
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	for _, target := range []string{"/audit", "/nodes", "/store"} {
		w := answerOf(h.board, request(http.MethodGet, target, nil))
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: status %d", target, w.Code)
		}
		says(t, w.Body.String(), "You don't have permission to see this.")
		saysNot(t, w.Body.String(), "orders")
	}
}

// However often a page needs it, the right to a queue is asked for once.
func TestTheRightToAQueueIsAskedOnce(t *testing.T) {
	asked := 0
	c := &call{who: &service.Caller{Authorize: func(a service.Action) error {
		asked++
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}}
	s := sight{c: c, queues: map[string]bool{}}
	for range 3 {
		if !s.sees("orders") || s.sees("secrets") {
			t.Fatal("the rights are wrong")
		}
	}
	if asked != 2 {
		t.Errorf("the rights to 2 queues were asked for %d times", asked)
	}
}

// A user of some queues whose request ends before the first look is done sees no queue.
func TestAUserOfSomeQueuesLeavesDuringTheFirstLook(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	h.board.looker.looking <- struct{}{} // another request looks
	gone, leave := context.WithCancel(t.Context())
	leave()
	if w := answerOf(h.board, request(http.MethodGet, "/", nil).WithContext(gone)); w.Code < http.StatusBadRequest {
		t.Errorf("status %d: %s", w.Code, words(w.Body.String()))
	}
}
