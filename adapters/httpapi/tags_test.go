package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// pushTagged pushes jobs with tags, which spaces separate.
func (h *house) pushTagged(tags string, ids ...string) {
	h.t.Helper()
	set, err := core.NewTags(strings.Fields(tags)...)
	if err != nil {
		h.t.Fatal(err)
	}
	r := ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1}
	for _, id := range ids {
		r.Entries = append(r.Entries, core.Entry{ID: id, Payload: core.Payload{Data: []byte("p"), Score: 1}, Tags: set})
	}
	if _, err := h.store.Push(h.t.Context(), r); err != nil {
		h.t.Fatal(err)
	}
}

func jobIDs(rows []jobRow) (ids []string) {
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestTagsAreShownAndFilterListsAndActions(t *testing.T) {
	h := newHouse(t, Options{})
	h.pushTagged("vip import-7", "a", "b")
	h.pushTagged("import-7", "c")
	h.push("d", 0, "p")
	all := get[list[jobRow]](h, "/queues/orders/jobs?sort=id")
	if row := all.Items[0]; row.ID != "a" || !slices.Equal(row.Tags, []string{"import-7", "vip"}) ||
		all.Items[3].Tags != nil {
		t.Errorf("jobs %+v", all.Items)
	}
	for query, want := range map[string]string{
		"tag=vip":                            "[a b]",
		"tag=import-7&sort=id":               "[a b c]",
		"tag=none":                           "[]",
		"tag=import-7&fresh=true&payloads=3": "[a b c]",
	} {
		page := get[list[jobRow]](h, "/queues/orders/jobs?"+query)
		if got := fmt.Sprint(jobIDs(page.Items)); got != want || page.Next != "" {
			t.Errorf("%s: %s and next %q; want %s", query, got, page.Next, want)
		}
	}
	first := get[list[jobRow]](h, "/queues/orders/jobs?tag=import-7&sort=id&limit=2")
	second := get[list[jobRow]](h, "/queues/orders/jobs?tag=import-7&sort=id&limit=2&after="+first.Next)
	if len(first.Items) != 2 || fmt.Sprint(jobIDs(second.Items)) != "[c]" || second.Next != "" {
		t.Errorf("pages of two: %+v, then %+v", first, second)
	}
	match := func(tag string) service.BulkBody {
		return service.BulkBody{Match: &service.Match{Tag: service.Given(tag)}}
	}
	if r := post[service.BulkReply](h, "/queues/orders/jobs/bury", match("vip")); r.Handled != 0 {
		t.Errorf("jobs that have not failed were buried: %+v", r)
	}
	h.end(core.Failed, "boom")
	if r := post[service.BulkReply](h, "/queues/orders/jobs/bury", match("vip")); r.Handled != 2 {
		t.Errorf("buried by a tag: %+v; want 2", r)
	}
	dead := get[list[deadRow]](h, "/queues/orders/morgue?tag=vip&sort=id")
	if len(dead.Items) != 2 || !slices.Equal(dead.Items[1].Tags, []string{"import-7", "vip"}) {
		t.Errorf("dead letters by a tag: %+v", dead.Items)
	}
	both := service.BulkBody{Match: &service.Match{Tag: "vip", Error: "another"}}
	if r := post[service.BulkReply](h, "/queues/orders/morgue/revive", both); r.Handled != 0 {
		t.Errorf("revived by a tag and another error: %+v", r)
	}
	both.Match.Error = "boom"
	if r := post[service.BulkReply](h, "/queues/orders/morgue/revive", both); r.Handled != 2 {
		t.Errorf("revived by a tag and an error: %+v; want 2", r)
	}
	for index := range houseShards {
		h.turn(index, 10)
	}
	if page := get[list[claimedRow]](h, "/queues/orders/claimed?tag=vip"); len(page.Items) != 2 ||
		len(page.Items[0].Tags) != 2 {
		t.Errorf("claimed by a tag: %+v", page.Items)
	}
}

// A tag finds a job from the push that adds it until the job is gone: cancelled while it waits, or
// while it runs.
func TestATagFindsAJobWhileItIsThere(t *testing.T) {
	h := newHouse(t, Options{})
	found := func(when, path string, want ...string) {
		t.Helper()
		var ids []string
		for _, row := range get[list[jobRow]](h, "/queues/orders/"+path+"?tag=foo").Items {
			ids = append(ids, row.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s the tag finds %q among the %s, want %q", when, ids, path, want)
		}
	}
	h.pushTagged("", "a")
	found("before it is added", "jobs")
	h.pushTagged("foo", "a")
	found("once it is added", "jobs", "a")
	post[service.BulkReply](h, "/queues/orders/jobs/delete", service.BulkBody{IDs: []string{"a"}})
	found("after the job was deleted", "jobs")

	h.pushTagged("foo", "a")
	index := core.ShardOf("a", houseShards)
	claim := h.turn(index, 1)[0]
	found("while the job runs", "claimed", "a")
	post[service.BulkReply](h, "/queues/orders/claimed/cancel", service.CancelBody{IDs: []string{"a"}, Drop: true})
	h.turn(index, 0, core.RetryPolicy{}.Settlement(&claim, &core.Outcome{Kind: core.Dropped}, 0))
	found("after the running job was cancelled", "claimed")
	found("after the running job was cancelled", "jobs")
	h.pushTagged("", "a")
	found("in a new job of the id", "jobs")
}

// A tag that no job can have is a mistake of the caller, in a list and in an action.
func TestATagThatNoJobCanHaveIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	long := strings.Repeat("x", core.MaxTagBytes+1)
	for _, r := range []*http.Request{
		request(http.MethodGet, base+"/queues/orders/jobs?tag="+long, ""),
		request(http.MethodPost, base+"/queues/orders/jobs/run-now", `{"match": {"tag": "`+long+`"}}`),
		request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"match": {"tag": "a\nb"}}`),
	} {
		if w := answerOf(h.api, r); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), "invalid tag") || strings.Contains(w.Body.String(), long) {
			t.Errorf("%s: %d %s; want a refusal that names the limit", r.URL.Path, w.Code, w.Body)
		}
	}
}

// A list by a rare tag does not read a whole queue for one page.
func TestAPageByTagIsBounded(t *testing.T) {
	h := newHouse(t, Options{})
	var ids []string
	for n := range 1_500 {
		ids = append(ids, fmt.Sprintf("j%04d", n))
	}
	h.pushTagged("", ids...)
	h.pushTagged("rare", "z")
	pages := 0
	var found []string
	for next := ""; pages == 0 || next != ""; pages++ {
		page := get[list[jobRow]](h, "/queues/orders/jobs?tag=rare&payloads=1&after="+next)
		found, next = append(found, jobIDs(page.Items)...), page.Next
	}
	if pages != 2 || fmt.Sprint(found) != "[z]" {
		t.Errorf("%d pages found %q; want 2 pages that find z", pages, found)
	}
}

func TestTagsAreNotShownWithRedactedIDs(t *testing.T) {
	h := newHouse(t, Options{RedactID: func(_, id string) string { return "#" }})
	h.pushTagged("ann", "a")
	page := get[list[jobRow]](h, "/queues/orders/jobs?tag=ann")
	if len(page.Items) != 1 || page.Items[0].Tags != nil || page.Items[0].ID != "#" {
		t.Errorf("%+v; want a job without its id and its tags", page.Items)
	}
	body := service.BulkBody{Match: &service.Match{Tag: "ann", Error: "boom"}}
	post[service.BulkReply](h, "/queues/orders/jobs/run-now", body)
	if text := answerOf(h.api,
		request(http.MethodGet, base+"/audit", "")).Body.String(); strings.Contains(text, "ann") ||
		!strings.Contains(text, "tag is") {
		t.Errorf("the audit is %s; want the filter without the tag", text)
	}
}

func TestClaimedJobsByTag(t *testing.T) {
	h := newHouse(t, Options{})
	h.target()
	h.pushTagged("vip", "a", "b")
	h.pushTagged("", "c", "d")
	for index := range houseShards {
		h.turn(index, 10)
	}
	if page := get[list[claimedRow]](h, "/queues/orders/claimed?tag=vip"); len(page.Items) != 2 {
		t.Errorf("claimed by a tag: %+v; want 2 of 4", page.Items)
	}
}

func TestAMoveOfDeadLettersByTag(t *testing.T) {
	h := newHouse(t, Options{})
	h.target()
	h.pushTagged("vip", "a", "b")
	h.pushTagged("", "c", "d")
	h.end(core.Buried, "boom")
	if page := get[list[deadRow]](h, "/queues/orders/morgue?tag=vip"); len(page.Items) != 2 {
		t.Errorf("dead letters by a tag: %+v; want 2 of 4", page.Items)
	}
	body := service.MoveBody{BulkBody: service.BulkBody{Match: &service.Match{Tag: "vip"}}, To: "moved"}
	if r := post[service.BulkReply](h, "/queues/orders/morgue/move", body); r.Handled != 2 {
		t.Errorf("moved by a tag: %+v; want 2", r)
	}
}

func TestTagsOfDeadLettersAreNotShownWithRedactedIDs(t *testing.T) {
	h := newHouse(t, Options{RedactID: func(_, id string) string { return "#" }})
	h.pushTagged("ann", "a")
	h.end(core.Buried, "boom")
	page := get[list[deadRow]](h, "/queues/orders/morgue?tag=ann")
	if len(page.Items) != 1 || page.Items[0].Tags != nil {
		t.Errorf("%+v; want a dead letter without its tags", page.Items)
	}
}
