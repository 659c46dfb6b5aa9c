package httpapi

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/shown"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, o := range []Options{
		{TrustedOrigins: []string{"ops.example.com"}},
		{TrustedOrigins: []string{"https://ops.example.com/jobs"}},
		{Hosts: []string{"localhost:8080"}},
		{Hosts: []string{"https://localhost"}},
		{Hosts: []string{""}},
		{Hosts: []string{"local/host"}},
		{Hosts: []string{"a b"}},
		{CursorKey: []byte("short")},
		{MaxBodyBytes: -1},
		{MaxHeaderBytes: -1},
	} {
		if _, err := New(inspect.New(nil, inspect.Options{}), o); !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := New(nil, Options{}); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("no inspector: %v", err)
	}
}

func TestHostsAreComparedByName(t *testing.T) {
	h := newHouse(t, Options{Hosts: []string{"Ops.Example.com", "[::1]", "10.0.0.7"}})
	for host, served := range map[string]bool{
		"ops.example.com":              true,
		"OPS.example.com:8443":         true,
		"ops.example.com.":             true,
		"[::1]:80":                     true,
		"[::1]":                        true,
		"10.0.0.7:1":                   true,
		"ops.example.com.evil.example": false,
		"localhost":                    false,
		"10.0.0.70":                    false,
		"":                             false,
		"ops.example.com@evil.example": false,
	} {
		r := request(http.MethodGet, base+"/queues", "")
		r.Host = host
		if w := answerOf(h.api, r); (w.Code == 200) != served {
			t.Errorf("%q: %d", host, w.Code)
		}
	}
}

// The refusal of a page's own action behind a proxy names the option that allows it.
func TestACrossOriginRefusalNamesTheOption(t *testing.T) {
	h := newHouse(t, Options{})
	r := request(http.MethodPost, base+"/queues/orders/pause", `{}`)
	r.Header.Set("Origin", "http://ops.example.com")
	if p := refused(t, "pause",
		answerOf(h.api, r), 403, "cross-origin"); !strings.Contains(p.Detail, "Options.TrustedOrigins") {
		t.Error(p.Detail)
	}
	h.api = h.over(h.store, Options{TrustedOrigins: []string{"http://ops.example.com"}})
	if w := answerOf(h.api, r.Clone(t.Context())); w.Code == http.StatusForbidden {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Redacted values are in no answer: not in cursors, checkpoints, sentences or samples either.
func TestWhatIsRedactedIsInNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id, secret, text = "maria.jones@example.com", "payload-secret", "dsn-secret"
		o := Options{
			RedactID:      func(string, string) string { return "someone" },
			RedactPayload: func(_, _ string, data []byte) []byte { return []byte(strings.Repeat("*", len(data))) },
			RedactError:   func(string, string, string) string { return "an error" },
			CursorKey:     []byte(strings.Repeat("k", 32)),
		}
		h := newHouse(t, o)
		h.push(id, 0, secret, secret+"2")
		h.end(core.Failed, text)
		h.push(id, 0, secret)
		h.dead(text, id+"2", id+"3")
		h.push(id+"4", 0, secret)
		h.turn(core.ShardOf(id+"4", houseShards), 1)
		longest := []ports.RunningJob{{Shard: core.Shard{Queue: "orders"}, ID: id}}
		if _, err := h.store.Announce(t.Context(), ports.AnnounceRequest{
			Node: ports.Node{Owner: "o", Status: ports.NodeStatus{Longest: longest}},
			TTL:  time.Hour,
		}); err != nil {
			t.Fatal(err)
		}
		post[bulkReply](h, "/queues/orders/jobs/run-now", service.BulkBody{IDs: []string{id}})
		post[bulkReply](h, "/queues/orders/jobs/bury",
			service.BulkBody{Match: &service.Match{Prefix: id + "none", Error: text}})
		var next string
		query := url.QueryEscape(id)
		for _, target := range []string{
			"/queues/orders/jobs?payloads=9&limit=1", "/queues/orders/jobs?sort=id&payloads=9",
			"/queues/orders/claimed?payloads=9", "/queues/orders/morgue?payloads=9&limit=1",
			"/find?payloads=9&id=" + query, "/why?queue=orders&id=" + query, "/nodes", "/audit",
		} {
			w := answerOf(h.api, request(http.MethodGet, base+target, ""))
			holdsNoSecret(t, target, w.Body.String(), id, secret, text)
			if w.Code != 200 || !strings.Contains(w.Body.String(), "someone") {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
			if strings.Contains(target, "morgue") {
				next = read[list[deadRow]](t, w).Next
			}
		}
		// A cursor works where it was not made, under the same key, and nowhere else.
		h.api = h.over(h.store, o)
		if page := get[list[deadRow]](h, "/queues/orders/morgue?after="+next); len(page.Items) != 1 {
			t.Errorf("%+v", page)
		}
		w := answerOf(h.api, request(http.MethodGet, base+"/queues/orders/groups", ""))
		holdsNoSecret(t, "groups", w.Body.String(), id, secret, text)
		groups := read[groupsReply](t, w)
		if len(groups.Items) != 1 || groups.Items[0].Name != "an error" || groups.Items[0].Count != 2 {
			t.Errorf("%+v", groups)
		}
		if page := get[list[deadRow]](h,
			"/queues/orders/morgue?group="+groups.Items[0].Group); len(page.Items) != 2 ||
			page.Items[0].Group != groups.Items[0].Group {
			t.Errorf("%+v", page)
		}
		refused(t, "a group's own name",
			answerOf(h.api, request(http.MethodGet, base+"/queues/orders/morgue?group="+text, "")),
			400, "invalid-options")
		dry := post[bulkReply](h, "/queues/orders/morgue/purge", service.BulkBody{
			Match:  &service.Match{},
			DryRun: true,
		})
		if len(dry.Dead) != 2 || dry.Dead[0].ID != "someone" {
			t.Errorf("%+v", dry)
		}
		for _, key := range [][]byte{nil, []byte(strings.Repeat("l", 32))} {
			o.CursorKey = key
			h.api = h.over(h.store, o)
			refused(t, "another key",
				answerOf(h.api, request(http.MethodGet, base+"/queues/orders/morgue?after="+next, "")),
				400, "invalid-cursor")
		}
	})
}

// The id of the job that must run alone first is redacted in the verdict on a job behind it, in the
// field and in the sentence. No payload is shown.
func TestTheJobInFrontIsRedactedInAVerdict(t *testing.T) {
	h := newHouse(t, Options{})
	const behind, alone, secret = "behind", "maria.jones@example.com", "payload-secret"
	shard := core.Shard{Queue: "orders", Index: core.ShardOf(alone, houseShards)}
	id := behind
	for n := 0; core.ShardOf(id, houseShards) != shard.Index; n++ {
		id = fmt.Sprint(behind, n)
	}
	suspect := core.Job{
		ID:    alone,
		State: core.State{PerformAt: core.InstantOf(epoch), RetryCount: -1, Recoveries: core.AloneRecoveries},
	}
	suspect.Payloads = []core.Payload{{Data: []byte(secret)}}
	if _, err := h.store.Import(t.Context(),
		ports.ImportRequest{Shard: shard, Shards: houseShards, Generation: 1, Jobs: []core.Job{suspect}}); err != nil {
		t.Fatal(err)
	}
	h.advance(time.Second)
	h.push(id, 0, secret)
	h.turn(shard.Index, 0)
	node := ports.Node{Owner: "owner", Name: "blue", Lanes: 1, Queues: []string{"orders"}}
	if _, err := h.store.Announce(t.Context(), ports.AnnounceRequest{Node: node, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	target := "/why?queue=orders&id=" + id
	if v := get[whyReply](h, target); v.Alone != alone || !strings.Contains(v.Text, alone) ||
		v.Found.Queued == nil || v.Found.Queued.Payloads != nil {
		t.Fatalf("%+v", v)
	}
	h.api = h.over(h.store, Options{RedactID: func(string, string) string { return "someone" }})
	w := answerOf(h.api, request(http.MethodGet, base+target, ""))
	holdsNoSecret(t, target, w.Body.String(), alone, secret)
	if v := read[whyReply](t, w); v.Alone != "someone" || !strings.Contains(v.Text, `"someone"`) {
		t.Errorf("%+v; want someone in front", v)
	}
}

// holdsNoSecret looks for secrets in a text, and in possible Base64 in it.
func holdsNoSecret(t *testing.T, what, text string, secrets ...string) {
	t.Helper()
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(`",:{}[]`, c) }) {
		if plain, err := base64.RawURLEncoding.DecodeString(word); err == nil {
			text += string(plain)
		}
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s tells %q: %s", what, secret, text)
		}
	}
}

// However many clients poll however many queues, a store is asked for statistics a hundredth of
// the time at most; and at once after an action.
func TestPollersCostAHundredthOfTheStoresTime(t *testing.T) {
	for _, targets := range [][]string{{"/queues/orders"}, {"/stats", "/queues/orders", "/queues/plain"}} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, Options{})
			if _, err := h.store.Declare(t.Context(), declarePlain); err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int64
			const cost = 20 * time.Millisecond
			h.api = h.over(storekit.Intercept(h.store, func(
				ctx context.Context, call storekit.Call, next func(context.Context) error,
			) error {
				if call.Method == "Stats" {
					asked.Add(1)
					time.Sleep(cost)
				}
				return next(ctx)
			}), Options{})
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for n := range 12 {
				go func() {
					for ctx.Err() == nil {
						w := answerOf(h.api, request(http.MethodGet, base+targets[n%len(targets)], ""))
						if w.Code != 200 {
							t.Errorf("%d %s", w.Code, w.Body)
						}
						time.Sleep(200 * time.Millisecond)
					}
				}()
			}
			<-ctx.Done()
			synctest.Wait()
			if n := asked.Load(); n < 20 || n > 30+int64(len(targets)) { // a minute has 30 times 2 s
				t.Errorf("%v: asked %d times", targets, n)
			}
			time.Sleep(time.Second)
			was := asked.Load()
			post[service.Done](h, "/queues/orders/pause", service.NoBody{})
			if !get[service.QueueReply](h, "/queues/orders").Paused || asked.Load() != was+1 {
				t.Error("what was done is not seen")
			}
		})
	}
}

// A store that hangs costs a look its five seconds, and is called a timeout.
func TestALookEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.api = h.over(storekit.Intercept(h.store, func(
			ctx context.Context, _ storekit.Call, _ func(context.Context) error,
		) error {
			<-ctx.Done()
			return ctx.Err()
		}), Options{})
		began := time.Now()
		refused(t, "queues", answerOf(h.api, request(http.MethodGet, base+"/queues", "")), 503, "timeout")
		if took := time.Since(began); took != service.LookTime {
			t.Errorf("took %v", took)
		}
	})
}

// A client that does not send its body is not waited for.
func TestABodyThatDoesNotComeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{Authorize: func(*http.Request, Action) error { return nil }})
		here, there := net.Pipe()
		defer here.Close()
		server := &http.Server{Handler: h.api}
		go server.Serve(&oneConn{conn: there, closed: make(chan struct{})})
		defer server.Close()
		began := time.Now()
		go fmt.Fprintf(here, "POST %s/queues/orders/pause HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{", base)
		reply, err := http.ReadResponse(bufio.NewReader(here), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		if took := time.Since(began); reply.StatusCode != http.StatusBadRequest || took != bodyTime {
			t.Errorf("%s after %v", reply.Status, took)
		}
	})
}

// Shards that can't be reached are named, beside the results of the others.
func TestAnswersNameShardsThatAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.dead("boom", numbered("a", 20)...)
		lost := []core.Shard{{Queue: "orders", Index: 1}}
		h.api = h.over(&partialStore{h.store, lost}, Options{})
		if s := get[service.StatsReply](h, "/stats"); len(s.Unreached) != 1 || s.Unreached[0] != "orders/1" ||
			s.Total.MorgueLength != 20 {
			t.Errorf("%+v", s)
		}
		w := answerOf(h.api, request(http.MethodGet, base+"/queues/orders/morgue", ""))
		if page := read[list[deadRow]](t, w); len(page.Items) != 20 || len(page.Unreached) != 1 ||
			w.Header().Get("Skein-Unreached") != "1" {
			t.Errorf("%+v %v", page, w.Header())
		}
		if page := get[list[historyRow]](h, "/queues/orders/history"); len(page.Items) != 1 ||
			len(page.Unreached) != 1 || page.Unreached[0] != "orders/1" {
			t.Errorf("%+v", page)
		}
		if reply := post[bulkReply](h, "/queues/orders/morgue/revive",
			service.BulkBody{Match: &service.Match{}}); len(reply.Unreached) != 1 || reply.Continue == "" {
			t.Errorf("%+v", reply)
		}
	})
}

// partialStore is a store that reports that shards can't be reached.
type partialStore struct {
	ports.ShardStore
	lost []core.Shard
}

func (s *partialStore) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	stats, err := s.ShardStore.Stats(ctx, r)
	for at := range stats {
		stats[at].Unreached = s.lost
	}
	return stats, err
}

func (s *partialStore) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	return ports.HistoryReply{Minutes: []ports.MinuteStats{{Stats: core.Stats{Processed: 7}}}, Unreached: s.lost}, nil
}

func (s *partialStore) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	page, err := s.ShardStore.Morgue(ctx, r)
	page.Unreached = s.lost
	return page, err
}

// The tags that the decoders and the document are made of are complete.
func TestEveryFieldIsDescribed(t *testing.T) {
	for _, route := range table() {
		if route.summary == "" || route.time == 0 || route.verb == "" || (route.query == nil) == (route.body == nil) {
			t.Errorf("%+v", route)
		}
		if route.query != nil {
			for _, p := range parameters(route.query) {
				probe := p
				if p.doc == "" {
					t.Errorf("%s: %s has no doc", route.path, p.name)
				}
				if p.deflt != "" {
					if err := probe.set(reflect.New(p.typ).Elem(), p.deflt); err != nil {
						t.Errorf("%s: %v", route.path, err)
					}
				}
			}
		}
		for _, of := range []reflect.Type{route.body, route.reply} {
			if of != nil && of.Kind() == reflect.Struct {
				described(t, of)
			}
		}
	}
}

func described(t *testing.T, of reflect.Type) {
	t.Helper()
	if recordOf(of) != of {
		of = recordOf(of)
		classified(t, of)
	}
	for _, f := range shown.Fields(of) {
		if f.Doc == "" {
			t.Errorf("%v: %s has no doc", of, f.Name)
		}
		if inner := inside(f.Type); inner != of && inner != reflect.TypeFor[time.Time]() && inner.Kind() == reflect.Struct {
			described(t, inner)
		}
	}
}

// inside returns the type of the elements of a list, a map or a pointer, and others as they are.
func inside(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// classified holds that each field of a record has a class, so that a rule of redaction decides how
// it is shown. Without a class it would be hidden.
func classified(t *testing.T, record reflect.Type) {
	t.Helper()
	for _, f := range reflect.VisibleFields(record) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if !slices.Contains(shown.Classes(), f.Tag.Get("class")) || f.Tag.Get("json") == "" {
			t.Errorf("the field %s of %v has the class %q and the name %q; give it both in its tags, see internal/shown",
				f.Name, record, f.Tag.Get("class"), f.Tag.Get("json"))
		}
		inner := inside(f.Type)
		if f.Tag.Get("class") == shown.Public && inner.Kind() == reflect.Struct && inner.PkgPath() != "time" &&
			!inner.Implements(reflect.TypeFor[fmt.Stringer]()) {
			classified(t, inner)
		}
	}
}

// Every list is of records, which only the redaction makes rows.
func TestEveryListIsOfRecords(t *testing.T) {
	for _, route := range table() {
		if !route.rows {
			continue
		}
		items, _ := route.reply.FieldByName("Items")
		if row := inside(items.Type); recordOf(row) == row {
			t.Errorf("%s: the rows are %v, which nobody redacts", route.path, row)
		}
	}
}
