package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

// many returns n payloads.
func many(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("p%04d", i)
	}
	return all
}

func TestPayloadsAreListedByPages(t *testing.T) {
	h := newHouse(t, Options{})
	want := many(250)
	h.push("a", 0, want...)
	h.end(core.Buried, "boom")
	h.push("a", 0, "queued")
	lengths, texts1 := []int{}, []string{}
	for next, more := "", true; more; more = next != "" {
		page := get[list[payloadRow]](h, "/queues/orders/payloads?id=a&place=dead&limit=100&after="+next)
		lengths, texts1, next = append(lengths, len(page.Items)), append(texts1, texts(t, page.Items)...), page.Next
	}
	if diff := cmp.Diff([]int{100, 100, 50}, lengths); diff != "" {
		t.Errorf("the lengths of the pages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, texts1); diff != "" {
		t.Errorf("the dead payloads (-want +got):\n%s", diff)
	}
	if page := get[list[payloadRow]](h,
		"/queues/orders/payloads?id=a&place=dead&limit=250"); len(page.Items) != 250 || page.Next != "" {
		t.Errorf("a page with all has %d payloads and a next of %q", len(page.Items), page.Next)
	}
	if page := get[list[payloadRow]](h, "/queues/orders/payloads?id=a"); len(page.Items) != 1 ||
		page.Next != "" {
		t.Errorf("the queued payloads: %+v", page)
	}
	if page := get[list[payloadRow]](h, "/queues/orders/payloads?id=nobody"); page.Items == nil ||
		len(page.Items) != 0 {
		t.Errorf("the payloads of nobody: %+v", page)
	}
	for query, problem := range map[string]string{
		"id=a&after=x":    "invalid-cursor",
		"id=a&place=away": "bad-request",
		"id=":             "invalid-id",
	} {
		target := base + "/queues/orders/payloads?" + query
		refused(t, target, answerOf(h.api, request(http.MethodGet, target, "")), 400, problem)
	}
}

// Large payloads end a page early, and a search in all queues shows those of 8 MiB.
func TestPayloadsAreBoundedInBytes(t *testing.T) {
	h := newHouse(t, Options{})
	large := make([]string, 20)
	for i := range large {
		large[i] = fmt.Sprintf("%02d", i) + strings.Repeat("x", 1<<20)
	}
	h.push("a", 0, large...)
	var got []string
	pages := 0
	for next, more := "", true; more; more = next != "" {
		page := get[list[payloadRow]](h, "/queues/orders/payloads?id=a&limit=1000&after="+next)
		if len(page.Items) > 8 {
			t.Errorf("a page has %d payloads of over a MiB", len(page.Items))
		}
		got, next, pages = append(got, texts(t, page.Items)...), page.Next, pages+1
	}
	if len(got) != len(large) || pages != 3 {
		t.Errorf("%d pages of %d payloads; want 3 of %d", pages, len(got), len(large))
	}
	found := get[list[foundRow]](h,
		"/find?"+url.Values{"id": {"a"}, "payloads": {"1000"}}.Encode()).Items[0].Queued
	if len(found.Payloads) != 7 || found.PayloadCount != 20 {
		t.Errorf("found %d of %d payloads; want the 7 that have 8 MiB, of 20", len(found.Payloads), found.PayloadCount)
	}
}
