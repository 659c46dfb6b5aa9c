package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// target declares the queue "moved" and pauses it.
func (h *house) target() {
	h.t.Helper()
	if _, err := h.store.Declare(h.t.Context(), ports.DeclareRequest{Queue: "moved", Shards: 2}); err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.Pause(h.t.Context(), "moved"); err != nil {
		h.t.Fatal(err)
	}
}

func TestMovesDoWhatTheySay(t *testing.T) {
	h := newHouse(t, Options{})
	h.target()
	h.dead("gone", "a", "c", "d")
	h.failed("boom", "a", "b")
	h.push("e", time.Hour, "p", "q")
	h.advance(time.Second)
	const jobs, morgue = "/queues/orders/jobs/move", "/queues/orders/morgue/move"
	named := post[service.BulkReply](h, jobs, service.MoveBody{
		BulkBody: service.BulkBody{IDs: []string{"a", "nowhere"}},
		To:       "moved",
	})
	if named.Handled != 2 || named.LookedAt != 2 {
		t.Errorf("by id: %+v; want the job and the dead letter of a", named)
	}
	for _, step := range []struct {
		path    string
		body    service.BulkBody
		handled int
	}{
		{jobs, service.BulkBody{Match: &service.Match{}, DryRun: true}, 2},
		{jobs, service.BulkBody{Match: &service.Match{Error: "boom"}}, 1},
		{jobs, service.BulkBody{Match: &service.Match{}}, 1},
		{morgue, service.BulkBody{Match: &service.Match{Prefix: "c"}}, 1},
		{morgue, service.BulkBody{Match: &service.Match{}}, 1},
	} {
		if reply := post[service.BulkReply](h, step.path,
			service.MoveBody{BulkBody: step.body, To: "moved"}); reply.Handled != step.handled || reply.Continue != "" {
			t.Errorf("%s: %+v, want %d", step.path, reply, step.handled)
		}
	}
	if all := get[service.QueueReply](h, "/queues/orders"); all.Length != 0 || all.MorgueLength != 0 {
		t.Errorf("the source has %+v", all)
	}
	if all := get[service.QueueReply](h, "/queues/moved"); all.Length != 3 || all.MorgueLength != 3 {
		t.Errorf("the target has %+v", all)
	}
}

func TestMovesAreRefused(t *testing.T) {
	h := newHouse(t, Options{Authorize: func(_ *http.Request, a Action) error {
		switch {
		case a.Queue == "secret":
			return errors.New("no")
		case a.Queue == "" && a.Verb == VerbMove:
			t.Error("a move without a target asks for the right on no queue")
		}
		return nil
	}})
	h.target()
	h.failed("boom", "a")
	h.dead("gone", "b")
	for body, want := range map[string]struct {
		status int
		name   string
	}{
		`{"ids":["a"]}`:                         {400, "bad-request"},
		`{"to":"moved"}`:                        {400, "bad-request"},
		`{"ids":["a"],"match":{},"to":"moved"}`: {400, "bad-request"},
		string(marshalled(t, service.MoveBody{
			BulkBody: service.BulkBody{IDs: numbered("j", service.MaxMoved+1)},
			To:       "moved",
		})): {400, "bad-request"},
		`{"ids":["a"],"to":"orders"}`:              {400, "invalid-options"},
		`{"ids":["a"],"to":"nowhere"}`:             {404, "unknown-queue"},
		`{"ids":["a"],"to":"secret"}`:              {403, "forbidden"},
		`{"match":{},"to":"secret"}`:               {403, "forbidden"},
		`{"match":{"prefix":""},"to":"moved"}`:     {400, "bad-request"},
		`{"match":{},"continue":"x","to":"moved"}`: {400, "invalid-checkpoint"},
	} {
		refused(t, body,
			answerOf(h.api, request(http.MethodPost, base+"/queues/orders/jobs/move", body)), want.status, want.name)
	}
	refused(t, "ids",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/move", `{"ids":["b"],"to":"moved"}`)),
		400, "bad-request")
	post[service.Done](h, "/queues/moved/resume", service.NoBody{})
	for _, path := range []string{"/queues/orders/jobs/move", "/queues/orders/morgue/move"} {
		refused(t, path,
			answerOf(h.api, request(http.MethodPost, base+path, `{"match":{},"to":"moved"}`)), 409, "not-paused")
	}
	if all := get[service.QueueReply](h, "/queues/orders"); all.Length != 1 || all.MorgueLength != 1 {
		t.Errorf("the source has %+v", all)
	}
}

// Many entries move in calls that each end after some, and continue where the last one ended.
func TestAMoveContinues(t *testing.T) {
	h := newHouse(t, Options{})
	h.target()
	ids := numbered("j", 2*service.BulkSteps+100)
	h.failed("boom", ids...)
	h.advance(time.Second)
	var at string
	for calls := 1; ; calls++ {
		reply := post[service.BulkReply](h, "/queues/orders/jobs/move", service.MoveBody{
			BulkBody: service.BulkBody{Match: &service.Match{}, Continue: at},
			To:       "moved",
		})
		if at = reply.Continue; at == "" {
			if reply.Handled != len(ids) || calls < 3 {
				t.Errorf("%+v after %d calls", reply, calls)
			}
			break
		}
	}
	stats, err := inspect.New(h.store, inspect.Options{}).Stats(t.Context(), "orders", "moved")
	if err != nil || stats[0].Length() != 0 || stats[1].Retrying != int64(len(ids)) {
		t.Errorf("%+v, %v", stats, err)
	}
}

// A move whose time is over within the schedules reports its progress, and a repeat continues it.
func TestAMoveThatRunsOutOfTimeContinues(t *testing.T) {
	ids := numbered("j", 30)
	for name, first := range map[string]service.BulkBody{"all": {Match: &service.Match{}}, "ids": {IDs: ids}} {
		h := newHouse(t, Options{})
		h.target()
		for _, id := range ids {
			h.schedule(id, "nightly")
		}
		whole, changes, most := h.api, 0, 0
		h.api = h.over(storekit.Intercept(h.store, func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if call.Method == "ChangeSchedules" {
				if changes++; changes > most {
					return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
				}
			}
			return next(ctx)
		}), Options{})

		send := func(body service.BulkBody) (p service.Problem) {
			t.Helper()
			text := string(marshalled(t, service.MoveBody{BulkBody: body, To: "moved"}))
			w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/jobs/move", text))
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusServiceUnavailable {
				t.Fatalf("%s: %d %s, %v", name, w.Code, w.Body, err)
			}
			return p
		}
		body := first
		p := send(body)
		if want := map[string]string{"all": "0 entries have moved", "ids": "no entry is known to have moved; send the request again"}[name]; !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %+v", name, p)
		}
		changes, most = 0, 2*17 // a schedule takes two changes
		p = send(body)
		if p.Result == nil || p.Result.Handled != 17 || !strings.Contains(p.Detail, "17 entries have moved; send the request again") ||
			(p.Result.Continue != "") != (name == "all") {
			t.Fatalf("%s: %+v, %+v", name, p, p.Result)
		}

		body.Continue = p.Result.Continue
		want := map[string]int{"all": 30, "ids": 13}[name] // an action on all counts from its first call
		h.api = whole
		if reply := post[service.BulkReply](h, "/queues/orders/jobs/move", service.MoveBody{BulkBody: body, To: "moved"}); reply.Handled != want {
			t.Errorf("%s: %+v, want %d", name, reply, want)
		}
		if page := get[list[scheduleRow]](h, "/queues/moved/schedules"); len(page.Items) != len(ids) {
			t.Errorf("%s: %d are moved", name, len(page.Items))
		}
	}
}

// Many schedules move in calls that each end after some.
func TestAMoveOfManySchedulesContinues(t *testing.T) {
	h := newHouse(t, Options{})
	h.target()
	ids := numbered("j", service.BulkSteps+200)
	for _, id := range ids {
		h.schedule(id, "nightly")
	}
	var at string
	for calls := 1; ; calls++ {
		reply := post[service.BulkReply](h, "/queues/orders/jobs/move", service.MoveBody{BulkBody: service.BulkBody{Match: &service.Match{}, Continue: at}, To: "moved"})
		if at = reply.Continue; at == "" {
			if reply.Handled != len(ids) || calls < 2 {
				t.Errorf("%+v after %d calls", reply, calls)
			}
			break
		}
	}
}
