package dashboard

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
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
		{ID: "tagged", Payload: core.Payload{Data: []byte("p"), Score: 1}, Tags: set},
		{ID: "other", Payload: core.Payload{Data: []byte("p"), Score: 1}},
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
	says(t, h.do("op", "bury", "q", "orders", "bulk", "1", "tag", "import-7", "before", before, "confirm", "1"),
		"1 moved to the morgue")
	letters := h.get("/morgue?q=orders&tag=%3Cvip%3E")
	says(t, letters, "tagged <vip> import-7", "All with the tag <vip>: revive")
	has(letters, "op=revive&amp;q=orders&amp;tag=%3Cvip%3E")
	has(letters, "op=purge&amp;q=orders&amp;tag=%3Cvip%3E")
	says(t, h.get("/morgue?q=orders&tag=none"), "No dead letters match")
	says(t, h.get("/id?q=orders&id=tagged"), "Dead", "tags <vip> import-7")
}

// An action on all with a tag that takes several steps keeps the tag until it has ended, and then
// leads back to the list by that tag.
func TestStepsKeepTheTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		set, err := core.NewTags("vip")
		if err != nil {
			t.Fatal(err)
		}
		r := ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1}
		for n := range 900 {
			r.Entries = append(r.Entries,
				core.Entry{ID: fmt.Sprint(n), Payload: core.Payload{Data: []byte("p"), Score: 1}, Tags: set})
		}
		r.Entries = append(r.Entries, core.Entry{ID: "other", Payload: core.Payload{Data: []byte("p"), Score: 1}})
		if _, err := h.store.Push(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		h.end("orders", core.Buried, "boom")
		h.advance(time.Second)
		page := h.get("/sheet?q=orders&op=revive&tag=vip")
		form := []string{
			"op", "revive", "q", "orders", "bulk", "1", "before", field(t, page, "before"),
			"tag", field(t, page, "tag"), "back.tag", field(t, page, "back.tag"),
		}
		h.store.revives, h.store.fails = 1, errors.New("connection reset")
		page = h.do(form...)
		h.store.fails = nil
		if tag, back := field(t, page, "tag"), field(t, page, "back.tag"); tag != "vip" || back != "vip" {
			t.Errorf("the next step has the tag %q and leads back to %q", tag, back)
		}
		w := h.form(append(form, "continue", field(t, page, "continue"))...)
		if to := w.Header().Get("Location"); !strings.HasPrefix(to, "morgue?") || !strings.Contains(to, "tag=vip") {
			t.Errorf("the action has led to %q, want the morgue by the tag", to)
		}
		if n := h.stats().Dead; n != 1 {
			t.Errorf("%d dead letters are left, want the one without the tag", n)
		}
	})
}

// The length of a list by a tag is unknown, and an action on its rows leads back to it.
func TestAListByTag(t *testing.T) {
	h := newHouse(t, Options{})
	set, err := core.NewTags("vip")
	if err != nil {
		t.Fatal(err)
	}
	r := ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1, Entries: []core.Entry{
		{ID: "tagged", Payload: core.Payload{Data: []byte("p"), Score: 1}, Tags: set},
		{ID: "other", Payload: core.Payload{Data: []byte("p"), Score: 1}},
	}}
	if _, err := h.store.Push(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	says(t, h.get("/jobs?q=orders"), "2 of 2 ")
	saysNot(t, h.get("/jobs?q=orders&tag=vip"), "1 of ")
	for page, op := range map[string]string{"jobs": "run-now", "morgue": "revive"} {
		w := h.form("op", op, "q", "orders", "id", "tagged", "back.tag", "vip")
		if to := w.Header().Get("Location"); !strings.HasPrefix(to, page+"?") || !strings.Contains(to, "tag=vip") {
			t.Errorf("%s has led to %q, want the page %s by the tag", op, to, page)
		}
	}
}

// The counts of the last hour and day are those of the queue, also beside a list by a tag.
func TestTheLastDayOfAListByTagIsThatOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		set, err := core.NewTags("vip")
		if err != nil {
			t.Fatal(err)
		}
		r := ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1, Entries: []core.Entry{
			{ID: "tagged", Payload: core.Payload{Data: []byte("p"), Score: 1}, Tags: set},
		}}
		if _, err := h.store.Push(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		h.end("orders", core.Buried, "boom")
		h.advance(25 * time.Hour)
		h.ended(core.Buried, "boom", "other")
		h.advance(2 * time.Hour)
		says(t, h.get("/morgue?q=orders&tag=vip"), "all 0 1 2 ")
	})
}

// The words of an action name the entries that it chooses. Only without any filter are they all.
func TestTheChosenEntriesAreNamed(t *testing.T) {
	for want, m := range map[string]service.Match{
		"all jobs of orders":                                            {},
		"jobs of orders with the tag “vip”":                             {Tag: "vip"},
		"jobs of a group of orders":                                     {Group: "g"},
		"jobs of orders whose error contains “boom”":                    {Error: "boom"},
		"jobs of orders whose id begins with “a” with the tag “vip”":    {Prefix: "a", Tag: "vip"},
		"jobs of orders with the tag “vip” whose error contains “boom”": {Tag: "vip", Error: "boom"},
	} {
		if got := chosen(m, "jobs", "orders", ""); got != want {
			t.Errorf("%+v are named %q, want %q", m, got, want)
		}
	}
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
	for id, a := range map[string]ports.Action{
		"1": {Filter: `tag is "vip"`},
		"2": {Filter: `error has "boom"`, Prefix: "a"},
	} {
		a.ID, a.Verb, a.Queue, a.Ended = id, "revive all", "orders", true
		if err := h.store.Audit(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	page := h.get("/audit")
	says(t, page, `revive all orders tag is "vip"`)
	says(t, page, `revive all orders prefix a, error has "boom"`)
}
