package dashboard

import (
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
	has(list, `op=run-now&amp;q=orders&amp;tag=import-7`)
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
	says(t, h.get("/morgue?q=orders&tag=none"), "No dead letters match")
	says(t, h.get("/id?q=orders&id=tagged"), "Dead", "tags <vip> import-7")
}
