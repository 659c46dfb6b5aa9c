package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Tags are shown in lists and on the page of an id, filter lists, and select what an action on all
// handles.
func TestTagsAreShownAndFilter(t *testing.T) {
	h := newHouse(t, Options{})
	set, err := core.NewTags("<vip>", "import-7")
	if err != nil {
		t.Fatal(err)
	}
	r := ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1, Entries: []core.Entry{
		{ID: "tagged", Payload: core.Payload{Data: []byte("p"), Score: 1}, Tags: set}, {ID: "other", Payload: core.Payload{Data: []byte("p"), Score: 1}},
	}}
	if _, err := h.store.Push(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	has := func(page, part string) {
		t.Helper()
		if !strings.Contains(page, part) {
			t.Errorf("no %s in:\n%s", part, page)
		}
	}
	h.advance(time.Second)
	says(t, h.get("/jobs?q=orders"), "other", "tagged <vip> import-7")
	list := h.get("/jobs?q=orders&tag=import-7")
	says(t, list, "tagged <vip> import-7", "With the tag import-7: All: run now")
	has(list, `name="tag" value="import-7"`)
	for _, op := range []string{"run-now", "bury", "delete"} {
		has(list, `op=`+op+`&amp;q=orders&amp;tag=import-7"`)
	}
	has(h.get("/jobs?q=orders&list=held&tag=import-7"), `op=release&amp;q=orders&amp;tag=import-7"`)
	has(list, `list=fresh&amp;q=orders&amp;tag=import-7"`)
	if strings.Contains(list, ">other<") {
		t.Error("the list by a tag has a job without it")
	}
	says(t, h.get("/jobs?q=orders&tag=none"), "No jobs match")
	says(t, h.get("/id?q=orders&id=tagged"), "tags <vip> import-7")
	h.end("orders", core.Failed, "boom")
	sheet := h.get("/sheet?q=orders&op=bury&tag=import-7")
	says(t, sheet, "with the tag “import-7”", "1 match of 2", "Bury 1")
	has(sheet, `name="tag" value="import-7"`)
	before := strings.Split(strings.SplitN(sheet, `name="before" value="`, 2)[1], `"`)[0]
	says(t, h.do("op", "bury", "q", "orders", "bulk", "1", "tag", "import-7", "before", before, "confirm", "1"), "1 moved to the morgue")
	letters := h.get("/morgue?q=orders&tag=%3Cvip%3E")
	says(t, letters, "tagged <vip> import-7", "All with the tag <vip>: revive")
	has(letters, "op=revive&amp;q=orders&amp;tag=%3Cvip%3E")
	has(letters, "op=purge&amp;q=orders&amp;tag=%3Cvip%3E")
	says(t, h.get("/morgue?q=orders&tag=none"), "No dead letters match")
	says(t, h.get("/id?q=orders&id=tagged"), "Dead", "tags <vip> import-7")
}

// A page by a rare tag that has found nothing yet does not claim that no job has the tag.
func TestAnEmptyPageByTagHasANextOne(t *testing.T) {
	h := newHouse(t, Options{})
	r := ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1}
	for n := range 10_001 {
		r.Entries = append(r.Entries, core.Entry{ID: fmt.Sprint(n), Payload: core.Payload{Data: []byte("p"), Score: 1}})
		if len(r.Entries) == 1_000 || n == 10_000 {
			if _, err := h.store.Push(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			r.Entries = nil
		}
	}
	h.advance(time.Second)
	says(t, h.get("/jobs?q=orders&tag=rare"), "None of the jobs read so far match; more follow.")
}

// An action by a tag is listed in the audit with the tag.
func TestTheAuditShowsTheTag(t *testing.T) {
	h := newHouse(t, Options{})
	for id, a := range map[string]ports.Action{"1": {Filter: `tag is "vip"`}, "2": {Filter: `error has "boom"`, Prefix: "a"}} {
		a.ID, a.Verb, a.Queue, a.Ended = id, "revive all", "orders", true
		if err := h.store.Audit(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	page := h.get("/audit")
	says(t, page, `revive all orders tag is "vip"`)
	says(t, page, `revive all orders prefix a, error has "boom"`)
}
