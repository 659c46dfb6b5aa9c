package integration_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// apiClient calls an API of a store, and checks its answers against its own OpenAPI document.
type apiClient struct {
	t        *testing.T
	server   *httptest.Server
	document *openapi3.T
	asked    map[string]bool
}

func newAPIClient(t *testing.T, store ports.ShardStore) *apiClient {
	t.Helper()
	api, err := httpapi.New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}),
		httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &apiClient{t: t, server: httptest.NewServer(api), asked: map[string]bool{}}
	t.Cleanup(c.server.Close)
	if c.document, err = openapi3.NewLoader().LoadFromData(c.ask(http.MethodGet, "/openapi.json", "")); err != nil {
		t.Fatal(err)
	}
	if err := c.document.Validate(t.Context()); err != nil || c.document.OpenAPI != "3.1.0" {
		t.Fatalf("document of OpenAPI %s: %v", c.document.OpenAPI, err)
	}
	return c
}

// ask sends a request and returns the body of the answer, which must be a success.
func (c *apiClient) ask(method, target, body string) []byte {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL+"/api/v1"+target, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	}
	r.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s: %s %s %v", method, target, reply.Status, text, err)
	}
	return text
}

// do requests a route, checks request and answer against the document, and reads the answer.
func (c *apiClient) do(method, path, query string, body, into any) {
	c.t.Helper()
	c.asked[method+" "+path] = true
	operation := c.document.Paths.Find(path).GetOperation(method)
	text := ""
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		text = string(data)
		c.fits(path, operation.RequestBody.Value.Content, data)
	}
	reply := c.ask(method, strings.ReplaceAll(path, "{queue}", "orders")+query, text)
	c.fits(path, operation.Responses.Status(http.StatusOK).Value.Content, reply)
	if into != nil {
		if err := json.Unmarshal(reply, into); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *apiClient) fits(path string, content openapi3.Content, data []byte) {
	c.t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	var value any
	if err := decoder.Decode(&value); err != nil {
		c.t.Fatal(err)
	}
	if err := content["application/json"].Schema.Value.VisitJSON(value, openapi3.MultiErrors()); err != nil {
		c.t.Errorf("%s: %v", path, err)
	}
}

// apiIDs and apiPayloads are values that paths, forms, JSON and stores could damage.
var (
	apiIDs = []string{
		".", "..", "/", "a/b", "%", "%2F", "?a&b", "a b+c", `"<script>`, "\u202e", "a\u0301", "\U0001F600", "\uFFFD",
		"{orders/0}", "'; --",
		strings.Repeat("é", core.MaxIDBytes/2), strings.Repeat("x", core.MaxIDBytes),
	}
	apiPayloads = []string{"", "\x00", "\xff\xfe\x00", "text", `{"a":"b"}`, "\u2028", `\ud800`}
)

type apiPayload struct {
	Data   *string `json:"data"`
	Base64 *string `json:"data_base64"`
}

// bytesOf reads payloads as a client does.
func bytesOf(t *testing.T, payloads []apiPayload) (list []string) {
	t.Helper()
	for _, p := range payloads {
		if p.Data != nil {
			list = append(list, *p.Data)
			continue
		}
		data, err := base64.StdEncoding.DecodeString(*p.Base64)
		if err != nil {
			t.Error(err)
		}
		list = append(list, string(data))
	}
	slices.Sort(list)
	return list
}

type apiFound struct {
	Items []struct {
		Queued, Dead *struct {
			ID       string       `json:"id"`
			Payloads []apiPayload `json:"payloads"`
		}
	} `json:"items"`
}

// TestHTTPAPIOnEveryStore sends hostile ids and payloads through every route, and holds each
// answer to the OpenAPI document.
func TestHTTPAPIOnEveryStore(t *testing.T) {
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := kit.Open(t, newURL(t))
			c := newAPIClient(t, store)
			token := c.pushHostile(store)
			c.ask(http.MethodGet, "/queues/orders/jobs?sort=id&payloads=1000&limit=3", "")
			c.unharmed()
			c.claimAndCancel(store, token)
			c.recorded()
			c.firstAndMoved(store)
			c.schedules(store)
			c.theRest(store)
			for path, item := range c.document.Paths.Map() {
				for method := range item.Operations() {
					if !c.asked[method+" "+path] && path != "/openapi.json" {
						t.Errorf("nothing asked for %s %s", method, path)
					}
				}
			}
		})
	}
}

// pushHostile pushes apiIDs with apiPayloads, acquires the only shard, and returns the lease's
// token.
func (c *apiClient) pushHostile(store ports.ShardStore) int64 {
	t := c.t
	t.Helper()
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{
		Queue: "orders", Shards: 1, IndexIDs: true,
	}); err != nil {
		t.Fatal(err)
	}

	var entries []any
	for _, id := range apiIDs {
		for n, p := range apiPayloads {
			entry := map[string]any{"id": id, "score": n, "meta_base64": "/w==", "in_seconds": 3600}
			if utf8.ValidString(p) {
				entry["data"] = p
			} else {
				entry["data_base64"] = base64.StdEncoding.EncodeToString([]byte(p))
			}
			entries = append(entries, entry)
		}
	}
	var met struct{ New, Merged int }
	c.do(http.MethodPost, "/queues/{queue}/jobs", "", map[string]any{"entries": entries}, &met)
	if met.New != len(apiIDs) || met.New+met.Merged != len(entries) {
		t.Errorf("%d entries for %d ids met %+v", len(entries), len(apiIDs), met)
	}
	c.do(http.MethodPost, "/queues/{queue}/jobs", "", map[string]any{"rule": "earliest", "entries": []any{
		map[string]any{"id": "json", "payload": map[string]any{"Ä x": nil, "b": []any{1.5, "\u2028"}}, "tags": []string{"vip"}},
	}}, &met)
	if _, err := inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}).
		Delete(t.Context(), "orders", inspect.JobIDs("json")); err != nil {
		t.Fatal(err)
	}

	lease, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard: core.Shard{Queue: "orders"}, Shards: 1, Generation: 1, Owner: "owner", Attempt: 1, TTL: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return lease.Token
}

// unharmed reads, buries, edits and revives each id, and purges single payloads of it.
func (c *apiClient) unharmed() {
	c.t.Helper()
	whole := slices.Sorted(slices.Values(apiPayloads))
	for _, id := range apiIDs {
		query := "?" + url.Values{"queue": {"orders"}, "id": {id}, "payloads": {"1000"}}.Encode()
		look := func() (f apiFound) {
			c.t.Helper()
			c.do(http.MethodGet, "/find", query, nil, &f)
			return f
		}
		if f := look(); f.Items[0].Queued == nil || f.Items[0].Queued.ID != id ||
			!slices.Equal(bytesOf(c.t, f.Items[0].Queued.Payloads), whole) {
			c.t.Errorf("%q: %+v", id, f)
		}
		there, back := map[string]string{"data": `{"a":"b"}`}, map[string]string{"data": `{"a":`}
		c.handles(1, "/queues/{queue}/jobs/edit", map[string]any{
			"id": id, "edits": []any{map[string]any{"old": there, "new": back}}, "not_json": true,
		})
		c.handles(1, "/queues/{queue}/jobs/edit", map[string]any{
			"id": id, "edits": []any{map[string]any{"old": back, "new": there}},
		})
		c.handles(1, "/queues/{queue}/jobs/bury", map[string]any{"ids": []string{id}})
		edit := map[string]any{
			"old": map[string]string{"data_base64": base64.StdEncoding.EncodeToString([]byte("\xff\xfe\x00"))},
			"new": map[string]string{"data_base64": "/g=="},
		}
		c.handles(1, "/queues/{queue}/morgue/edit", map[string]any{"id": id, "edits": []any{edit}})
		purged := []any{map[string]any{
			"id":       id,
			"payloads": []any{map[string]string{"data": ""}, map[string]string{"data": "\x00"}},
		}}
		c.handles(1, "/queues/{queue}/morgue/purge", map[string]any{"payloads": purged})
		want := slices.Sorted(slices.Values([]string{"\xfe", "text", `{"a":"b"}`, "\u2028", `\ud800`}))
		if f := look(); f.Items[0].Dead == nil || f.Items[0].Dead.ID != id ||
			!slices.Equal(bytesOf(c.t, f.Items[0].Dead.Payloads), want) {
			c.t.Errorf("%q in the morgue: %+v", id, f)
		}
		var page struct{ Items []apiPayload }
		c.do(http.MethodGet, "/queues/{queue}/payloads",
			"?"+url.Values{"id": {id}, "place": {"dead"}}.Encode(), nil, &page)
		if !slices.Equal(bytesOf(c.t, page.Items), want) {
			c.t.Errorf("%q has the payloads %+v", id, page)
		}
		var why struct{ Reason string }
		if c.do(http.MethodGet, "/why", "?"+url.Values{
			"queue": {"orders"}, "id": {id},
		}.Encode(), nil, &why); why.Reason != "dead" {
			c.t.Errorf("%q: %+v", id, why)
		}
	}
	c.do(http.MethodGet, "/queues/{queue}/morgue", "?payloads=3&sort=id", nil, nil)
	var groups struct{ Items []struct{ Group string } }
	if c.do(http.MethodGet, "/queues/{queue}/groups", "", nil, &groups); len(groups.Items) != 1 {
		c.t.Fatalf("groups %+v", groups)
	}
	var found struct {
		Dead  int
		Items []struct{ Parts []struct{ Group string } }
	}
	c.do(http.MethodGet, "/errors", "?entries=100", nil, &found)
	if found.Dead != len(apiIDs) || len(found.Items) != 1 || found.Items[0].Parts[0].Group != groups.Items[0].Group {
		c.t.Fatalf("errors %+v", found)
	}
	c.handles(len(apiIDs), "/queues/{queue}/morgue/purge",
		map[string]any{"match": map[string]any{"group": groups.Items[0].Group}, "dry_run": true})
	c.handles(0, "/queues/{queue}/morgue/revive", map[string]any{"match": map[string]any{"error": "nothing"}})
	c.handles(len(apiIDs), "/queues/{queue}/morgue/revive", map[string]any{"match": map[string]any{}})
}

// handles sends an action, and checks how many entries it handled.
func (c *apiClient) handles(want int, path string, body any) {
	c.t.Helper()
	var reply struct {
		Handled  int
		Continue string
	}
	if c.do(http.MethodPost, path, "", body, &reply); reply.Handled != want || reply.Continue != "" {
		c.t.Errorf("%s %v: %+v, want %d", path, body, reply, want)
	}
}

// claimAndCancel claims all, and drops one.
func (c *apiClient) claimAndCancel(store ports.ShardStore, token int64) {
	c.t.Helper()
	turn := ports.TurnRequest{
		Lease:  ports.Lease{Shard: core.Shard{Queue: "orders"}, Owner: "owner", Token: token},
		Number: 1,
		TTL:    time.Hour,
		Node:   "blue",
		Want:   100,
	}
	reply, err := store.Turn(c.t.Context(), turn)
	if err != nil || len(reply.Claims) != len(apiIDs) {
		c.t.Fatalf("%d claims, %v", len(reply.Claims), err)
	}
	c.handles(1, "/queues/{queue}/claimed/cancel", map[string]any{"ids": []string{"a/b"}, "drop": true})
	c.do(http.MethodGet, "/queues/{queue}/claimed", "?payloads=9", nil, nil)
	var settle []core.Settlement
	for at := range reply.Claims {
		settled := core.RetryPolicy{}.Settlement(&reply.Claims[at], &core.Outcome{Kind: core.Done}, 0)
		settled.Record(&reply.Claims[at], core.Run{Took: time.Second, Node: "blue", Result: []byte(apiPayloads[0])})
		settle = append(settle, settled)
	}
	turn.Number, turn.Want, turn.Settlements = reply.Last+1, 0, settle
	turn.Keep = core.KeepPast{Age: time.Hour}
	if _, err := store.Turn(c.t.Context(), turn); err != nil {
		c.t.Fatal(err)
	}
	if err := store.Release(c.t.Context(), turn.Lease); err != nil {
		c.t.Fatal(err)
	}
}

// recorded reads the records of the ids that were done.
func (c *apiClient) recorded() {
	c.t.Helper()
	done := map[string]bool{}
	for next := ""; ; {
		var page struct {
			Items []struct {
				ID   string
				Node string
				Took float64 `json:"took_seconds"`
			}
			Next string
		}
		c.do(http.MethodGet, "/queues/{queue}/past", "?"+url.Values{"limit": {"3"}, "after": {next}}.Encode(), nil, &page)
		for _, r := range page.Items {
			if done[r.ID] || r.Node != "blue" || r.Took != 1 {
				c.t.Errorf("the record %+v", r)
			}
			done[r.ID] = true
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if len(done) != len(apiIDs) {
		c.t.Errorf("%d of %d ids have a record", len(done), len(apiIDs))
	}
}

// firstAndMoved takes the first payloads of a job away, and moves what is left of it and what was
// buried to another queue.
func (c *apiClient) firstAndMoved(store ports.ShardStore) {
	c.t.Helper()
	const id = "a/b"
	ctx := c.t.Context()
	if _, err := store.Declare(ctx, ports.DeclareRequest{Queue: "aside", Shards: 1}); err != nil {
		c.t.Fatal(err)
	}
	if err := store.Pause(ctx, "aside"); err != nil {
		c.t.Fatal(err)
	}
	var entries []core.Entry
	for n, data := range []string{"\xff", "", "text"} {
		entries = append(entries, core.Entry{ID: id, Payload: core.Payload{Data: []byte(data), Score: float64(n)}})
	}
	if _, err := store.Push(ctx, ports.PushRequest{
		Queue: "orders", Shards: 1, Generation: 1, Entries: entries,
	}); err != nil {
		c.t.Fatal(err)
	}
	first := func(field, value string) any {
		return map[string]any{"first": []any{map[string]any{"id": id, "payload": map[string]string{field: value}}}}
	}
	c.handles(0, "/queues/{queue}/jobs/bury-first", first("data", "text")) // it is not first
	c.handles(1, "/queues/{queue}/jobs/bury-first", first("data_base64", "/w=="))
	c.handles(1, "/queues/{queue}/jobs/delete-first", first("data", ""))
	c.handles(0, "/queues/{queue}/jobs/release", map[string]any{"match": map[string]any{}})
	c.handles(2, "/queues/{queue}/jobs/move", map[string]any{"ids": []string{id}, "to": "aside"})
	c.handles(0, "/queues/{queue}/morgue/move", map[string]any{"match": map[string]any{}, "to": "aside"}) // by its id it has gone already
	found, err := store.Find(ctx, ports.FindRequest{Queue: "aside", ID: id, Payloads: 9})
	if err != nil || found.Queued == nil || len(found.Queued.Payloads) != 1 ||
		string(found.Queued.Payloads[0].Data) != "text" ||
		found.DeadLetter == nil || len(found.DeadLetter.Payloads) != 1 ||
		string(found.DeadLetter.Payloads[0].Data) != "\xff" {
		c.t.Errorf("the other queue has %+v, %v", found, err)
	}
}

// schedules stores a schedule for each id, with a hostile payload, acts on all of them, and removes
// them.
func (c *apiClient) schedules(store ports.ShardStore) {
	c.t.Helper()
	const payload = "\xff\xfe\x00"
	var changes []ports.ScheduleChange
	for _, id := range apiIDs {
		d := core.Declaration{
			ScheduleKey: core.ScheduleKey{ID: id, Name: "night:1"},
			Recurrence:  core.Recurrence{Spec: "every 1h0m0s 0", Data: []byte(payload)},
		}
		spec, err := core.ParseSpec(d.Spec, time.UTC)
		if err != nil {
			c.t.Fatal(err)
		}
		s, _ := d.Apply(core.Schedule{}, spec, "code", core.InstantOf(time.Now()))
		changes = append(changes, ports.ScheduleChange{ScheduleKey: d.ScheduleKey, Schedule: &s})
	}
	if _, err := store.ChangeSchedules(c.t.Context(), ports.ChangeSchedulesRequest{
		Shard: core.Shard{Queue: "orders"}, Shards: 1, Generation: 1, Changes: changes,
	}); err != nil {
		c.t.Fatal(err)
	}

	var names struct {
		Items []struct {
			Name  string
			Count int
		}
	}
	c.do(http.MethodGet, "/queues/{queue}/schedules/names", "", nil, &names)
	if len(names.Items) != 1 || names.Items[0].Name != "night:1" || names.Items[0].Count != len(apiIDs) {
		c.t.Errorf("the names of schedules are %+v", names)
	}
	var page struct{ Items []struct{ ID string } }
	c.do(http.MethodGet, "/queues/{queue}/schedules", "?payloads=1", nil, &page)
	if len(page.Items) != len(apiIDs) {
		c.t.Errorf("the schedules are %+v", page)
	}

	changed := func(want int, action string, body map[string]any) {
		c.t.Helper()
		var reply struct{ Changed int }
		if c.do(http.MethodPost, "/queues/{queue}/schedules/"+action, "", body, &reply); reply.Changed != want {
			c.t.Errorf("%s %v changed %d schedules, want %d", action, body, reply.Changed, want)
		}
	}
	for _, id := range apiIDs {
		changed(1, "pause", map[string]any{"id": id, "note": "<b>"})
		changed(1, "edit", map[string]any{"id": id, "name": "night:1", "jitter_seconds": 60})

		var s struct {
			ID, Note string
			Jitter   float64    `json:"jitter_seconds"`
			Payload  apiPayload `json:"payload"`
		}
		c.do(http.MethodGet, "/queues/{queue}/schedule",
			"?"+url.Values{"id": {id}, "name": {"night:1"}, "payloads": {"1"}}.Encode(), nil, &s)
		if s.ID != id || s.Note != "<b>" || s.Jitter != 60 ||
			!slices.Equal(bytesOf(c.t, []apiPayload{s.Payload}), []string{payload}) {
			c.t.Errorf("%q has the schedule %+v", id, s)
		}
	}
	changed(len(apiIDs), "resume", map[string]any{"name": "night:1"})
	changed(len(apiIDs), "run", map[string]any{"name": "night:1"})

	var backfilled struct{ Ticks []any }
	now := time.Now()
	c.do(http.MethodPost, "/queues/{queue}/schedules/backfill", "", map[string]any{
		"id":   "a/b",
		"name": "night:1",
		"from": now.Add(-3 * time.Hour).Format(time.RFC3339),
		"to":   now.Add(-time.Hour).Format(time.RFC3339),
	}, &backfilled)
	if len(backfilled.Ticks) != 2 {
		c.t.Errorf("%d ticks of two hours, want 2", len(backfilled.Ticks))
	}
	c.handles(len(apiIDs), "/queues/{queue}/jobs/delete", map[string]any{"ids": apiIDs})
	changed(len(apiIDs), "remove", map[string]any{"name": "night:1"})
}

// theRest requests every other route, with something to show.
func (c *apiClient) theRest(store ports.ShardStore) {
	c.t.Helper()
	node := ports.Node{Owner: "o", Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues:  []ports.QueueStatus{{Queue: "orders", MaxRetries: 25, Rate: "6/1m0s"}},
		Longest: []ports.RunningJob{{Shard: core.Shard{Queue: "orders"}, ID: "a/b"}},
	}}
	if _, err := store.Announce(c.t.Context(), ports.AnnounceRequest{Node: node, TTL: time.Minute}); err != nil {
		c.t.Fatal(err)
	}
	for _, path := range []string{
		"/stats", "/queues", "/queues/{queue}", "/queues/{queue}/jobs", "/queues/{queue}/history",
		"/queues/{queue}/groups", "/queues/{queue}/quarantine", "/nodes", "/checks",
	} {
		c.do(http.MethodGet, path, "", nil, nil)
	}
	for _, path := range []string{"/queues/{queue}/pause", "/queues/{queue}/resume", "/queues/{queue}/recount"} {
		c.do(http.MethodPost, path, "", map[string]any{}, nil)
	}
	c.do(http.MethodPost, "/nodes/drain", "", map[string]any{"node": "blue"}, nil)
	c.do(http.MethodPost, "/nodes/resume", "", map[string]any{"node": "o"}, nil)
	var audit struct {
		Items []struct{ Action string }
	}
	c.do(http.MethodGet, "/audit", "?limit=1", nil, &audit)
	if len(audit.Items) != 1 || audit.Items[0].Action != "end drain" {
		c.t.Errorf("the audit says %+v last, want the end of the drain", audit.Items)
	}
	c.do(http.MethodPost, "/queues/{queue}/settings", "",
		map[string]any{"set": map[string]string{"max-running": "20"}, "version": 0}, nil)
	var configured struct{ Settings inspect.QueueSettings }
	c.do(http.MethodGet, "/queues/{queue}", "", nil, &configured)
	if s := configured.Settings.Find("max-running"); s == nil || s.InForce != "20" || configured.Settings.Version != 1 {
		c.t.Errorf("the queue's settings are %+v", configured.Settings)
	}
	c.do(http.MethodPost, "/queues/{queue}/rate/stop", "", map[string]any{"seconds": 600}, nil)
	var rate inspect.QueueRate
	c.do(http.MethodGet, "/queues/{queue}/rate", "", nil, &rate)
	if rate.Rate != "6/1m0s" || len(rate.Limiters) != 1 || rate.Limiters[0].Stopped.IsZero() {
		c.t.Errorf("a stopped rate is %+v", rate)
	}
	c.do(http.MethodPost, "/queues/{queue}/rate/resume", "", map[string]any{}, nil)
	c.do(http.MethodPost, "/queues/{queue}/merge", "", map[string]any{"merge": "latest(2)"}, nil)
	var shown struct{ Merge string }
	c.do(http.MethodGet, "/queues/{queue}", "", nil, &shown)
	if shown.Merge != "latest(2)" {
		c.t.Errorf("the queue's merge rule is %q", shown.Merge)
	}
	c.do(http.MethodPost, "/queues/{queue}/quarantine/discard", "",
		map[string]any{"shard": 0, "keys": []string{"k"}}, nil)
	c.do(http.MethodPost, "/queues/{queue}/tracked/add", "", map[string]any{"id": "a"}, nil)
	var tracked struct {
		Items []struct{ ID, Reason string }
	}
	c.do(http.MethodGet, "/queues/{queue}/tracked", "", nil, &tracked)
	if len(tracked.Items) != 1 || tracked.Items[0].ID != "a" || tracked.Items[0].Reason == "" {
		c.t.Errorf("the tracked ids are %+v, want a with a reason", tracked.Items)
	}
	c.do(http.MethodPost, "/queues/{queue}/tracked/remove", "", map[string]any{"id": "a"}, nil)
	c.handles(0, "/queues/{queue}/jobs/run-now", map[string]any{"ids": []string{"a"}})
	c.handles(0, "/queues/{queue}/jobs/delete", map[string]any{"match": map[string]any{}, "dry_run": true})
	c.do(http.MethodPost, "/queues/{queue}/forget", "", map[string]any{}, nil)
}
