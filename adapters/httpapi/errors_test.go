package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// errorRow and errorsReply are what a client reads.
type errorRow struct {
	Group   string               `json:"group"`
	Name    string               `json:"name"`
	Version string               `json:"version"`
	Sample  bool                 `json:"sample"`
	Parts   []inspect.ErrorPart  `json:"parts"`
	Entries []inspect.ErrorEntry `json:"entries"`

	Retrying, Dead, Held int64
	Steps                []int64
}

type errorsReply struct {
	Items                []errorRow
	Retrying, Dead, Held int64
	Read, Of             int64
	ServersUnknown       bool `json:"servers_unknown"`
}

func TestErrorsAreListedAndActedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.deadBy("timeout of shard #", "a", "b")
		h.failed("timeout of shard 7", "c")
		h.failed("no such customer 8", "d")

		all := get[errorsReply](h, "/errors?entries=2")
		if len(all.Items) != 2 || all.Items[0].Name != "timeout of shard #" || all.Items[0].Dead != 2 ||
			all.Items[0].Retrying != 1 || len(all.Items[0].Parts) != 2 || len(all.Items[0].Entries) != 2 ||
			all.Read != 4 || all.Of != 4 || len(all.Items[0].Steps) != inspect.ErrorSteps {
			t.Fatalf("%+v", all)
		}
		for target, want := range map[string]int{
			"?state=held": 0, "?state=dead": 1, "?state=retrying": 2, "?queue=orders&text=customer": 1,
			"?text=nothing": 0, "?tag=vip": 0, "?limit=1": 1,
			"?state=dead&since=" + url.QueryEscape(epoch.Add(time.Hour).Format(time.RFC3339)): 0,
		} {
			if found := get[errorsReply](h, "/errors"+target); len(found.Items) != want {
				t.Errorf("%s: %+v; want %d", target, found, want)
			}
		}
		refused(t, "a state", answerOf(h.api, request(http.MethodGet, base+"/errors?state=lost", "")), 400, "bad-request")
		refused(t, "a tag", answerOf(h.api, request(http.MethodGet, base+"/errors?tag=%0a", "")), 400, "bad-request")
		refused(t, "a queue", answerOf(h.api, request(http.MethodGet, base+"/errors?queue=no", "")), 404, "unknown-queue")

		match := &service.Match{Group: "timeout of shard #", State: "retrying"}
		dry := post[service.BulkReply](h, "/queues/orders/jobs/run-now", service.BulkBody{Match: match, DryRun: true})
		if dry.Handled != 1 {
			t.Errorf("a dry run: %+v", dry)
		}
		if r := post[service.BulkReply](h, "/queues/orders/jobs/bury", service.BulkBody{Match: match}); r.Handled != 1 {
			t.Errorf("buried: %+v", r)
		}
		for _, state := range []string{"dead", "lost"} {
			refused(t, state, answerOf(h.api, request(http.MethodPost, base+"/queues/orders/jobs/bury",
				`{"match":{"state":"`+state+`"}}`)), 400, "bad-request")
		}
	})
}

// A caller sees the errors of the queues that he may view, and no server's version unless he may
// view all.
func TestErrorsAreOfTheCallersQueues(t *testing.T) {
	mine := "orders"
	h := newHouse(t, Options{Authorize: func(_ *http.Request, a Action) error {
		switch {
		case mine == "nobody":
			return service.ErrUnauthenticated
		case mine != "all" && a.Queue != mine:
			return errors.New("not yours")
		}
		return nil
	}})
	if _, err := h.store.Declare(t.Context(), ports.DeclareRequest{Queue: "mails", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.Announce(t.Context(), ports.AnnounceRequest{TTL: time.Hour, Node: ports.Node{
		Owner: "o", Name: "blue", Version: "v1.5.0", Queues: []string{"orders"},
	}}); err != nil {
		t.Fatal(err)
	}
	h.dead("boom", "a")

	for _, tt := range []struct {
		mine, target, version string
		items, status         int
	}{
		{"all", "/errors", "v1.5.0", 1, 200},
		{"orders", "/errors", "", 1, 200},
		{"orders", "/errors?queue=orders", "", 1, 200},
		{"orders", "/errors?queue=mails", "", 0, 403},
		{"mails", "/errors", "", 0, 200},
		{"none", "/errors", "", 0, 403},
		{"nobody", "/errors", "", 0, 401},
	} {
		mine = tt.mine
		w := answerOf(h.api, request(http.MethodGet, base+tt.target, ""))
		if w.Code != tt.status {
			t.Errorf("%s of %s: %d %s; want %d", tt.target, tt.mine, w.Code, w.Body, tt.status)
			continue
		}
		if tt.status != http.StatusOK {
			continue
		}
		reply := read[errorsReply](t, w)
		if len(reply.Items) != tt.items || tt.items > 0 && reply.Items[0].Version != tt.version {
			t.Errorf("%s of %s: %+v", tt.target, tt.mine, reply)
		}
	}
}

// serverless is a store that can't list its servers.
type serverless struct{ *memory.Store }

func (serverless) Nodes(context.Context) (ports.NodesReply, error) {
	return ports.NodesReply{}, errors.New("refused")
}

// Errors are listed also if the servers can't be read, which is said. It is not said to a caller who
// may not view them.
func TestErrorsWithoutServers(t *testing.T) {
	h := newHouse(t, Options{})
	h.dead("boom", "a")
	for _, tt := range []struct {
		store   inspect.Store
		all     bool
		unknown bool
	}{{h.store, true, false}, {serverless{h.store}, true, true}, {serverless{h.store}, false, false}} {
		api := h.over(tt.store, Options{Authorize: func(_ *http.Request, a Action) error {
			if !tt.all && a.Queue != "orders" {
				return errors.New("no")
			}
			return nil
		}})
		for _, target := range []string{"/errors", "/errors?queue=orders"} {
			reply := read[errorsReply](t, answerOf(api, request(http.MethodGet, base+target, "")))
			if len(reply.Items) != 1 || reply.Items[0].Version != "" || reply.ServersUnknown != tt.unknown {
				t.Errorf("%s, all %v: %+v; servers unknown: want %v", target, tt.all, reply, tt.unknown)
			}
		}
	}
}

// Where texts are redacted, no answer has one: names are redacted, groups are keys, and a text
// can't be searched.
func TestErrorsAreRedacted(t *testing.T) {
	h := newHouse(t, Options{
		RedactError: func(string, string, string) string { return "hidden" },
		RedactID:    func(string, string) string { return "someone" },
	})
	h.failed("secret of a", "a")
	w := answerOf(h.api, request(http.MethodGet, base+"/errors?entries=5", ""))
	reply := read[errorsReply](t, w)
	if len(reply.Items) != 1 || reply.Items[0].Name != "hidden" || reply.Items[0].Entries[0].ID != "someone" {
		t.Fatalf("%s", w.Body)
	}
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%s", w.Body)
	}
	refused(t, "a text", answerOf(h.api, request(http.MethodGet, base+"/errors?text=secret", "")), 400, "bad-request")

	open := "/errors?entries=5&group=" + url.QueryEscape(reply.Items[0].Group)
	if one := get[errorsReply](h, open); len(one.Items) != 1 || len(one.Items[0].Entries) != 1 {
		t.Errorf("%+v", one)
	}
	match := &service.Match{Group: service.Given(reply.Items[0].Parts[0].Group)}
	if r := post[service.BulkReply](h, "/queues/orders/jobs/bury", service.BulkBody{Match: match}); r.Handled != 1 {
		t.Errorf("buried: %+v", r)
	}
}

// lostList is a store that can't read the record of a queue.
type lostList struct{ *memory.Store }

func (lostList) Queues(context.Context) ([]ports.Queue, error) {
	return nil, errors.New(`the record of queue "secret" is damaged`)
}

// A caller who may view some queues gets no error about others.
func TestAnErrorOfTheListOfQueuesNamesNoOthersQueue(t *testing.T) {
	h := newHouse(t, Options{})
	api := h.over(lostList{h.store}, Options{Authorize: func(_ *http.Request, a Action) error {
		if a.Queue != "orders" {
			return errors.New("no")
		}
		return nil
	}})
	w := answerOf(api, request(http.MethodGet, base+"/errors", ""))
	refused(t, "all queues", w, http.StatusServiceUnavailable, "store")
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%s", w.Body)
	}
}
