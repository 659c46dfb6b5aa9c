package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/dashboard"
)

// allPages are all pages of a furnished house, each with all that it can have. Under -short, two
// hostile ids stand for all.
func allPages() []string {
	pages := []string{
		"", "?sort=waiting", "queue?q=orders", "queue?q=orders&by=owner", "queue?q=wide", "queue?q=wide&by=owner",
		"queue?q=paused", "shards?q=wide",
		"jobs?q=orders", "jobs?q=orders&list=retries&sort=count", "jobs?q=orders&sort=id",
		"jobs?q=orders&list=scheduled", "jobs?q=wide&shard=3",
		"busy", "busy?q=orders", "morgue?q=orders", "morgue?q=orders&sort=id", "unreadable?q=orders",
		"tracked?q=orders", "nodes", at("server", "node", hostile[1]), "store", "audit", "errors", "errors?q=orders", "errors?state=held",
		at("errors", "open", "boom"), at("sheet", "q", "orders", "op", "bury", "group", "boom", "state", "retrying"),
		"schedules", "schedules?q=orders&contains=y&state=fine", "schedules?state=paused",
		"settings?q=orders", "settings?q=orders&version=0&max-running=20&morgue-age=30d",
		"backfill?q=orders&name=yearly&id=tenant-7",
		"backfill?q=orders&name=yearly&id=tenant-7&from=2001-01-01T00:00&to=2020-01-01T00:00",
		"named?q=orders&name=yearly", "named?q=orders&name=yearly&state=fine", "schedule?q=orders&name=yearly&id=tenant-7",
		at("schedule", "q", "wide", "name", strings.Repeat("long-name.", 12), "id", "tenant-7"),
		"id?q=orders&id=tenant-7",
		"search?for=twice", "search?for=tenant-7", "search?for=nobody-has-it",
		"sheet?q=orders&op=purge", "sheet?q=orders&op=delete",
	}
	ids := hostile
	if testing.Short() {
		ids = []string{hostile[0], ".."}
	}
	for _, id := range ids {
		pages = append(pages, at("id", "q", "orders", "id", id))
	}
	return pages
}

// Every page, in both colour schemes, on a desktop and on a phone: no message in the console, no
// request to another site, nothing that moves or is wider than the window, and nothing that people
// with poor eyesight or a poor pointer can't use. Under -short the light scheme on a desk stands
// for all, and a page may move.
func TestPages(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	h.settle()
	looks := []look{desk, {width: 1280, height: 900, dark: true}, {width: 400, height: 800}}
	if testing.Short() {
		looks = looks[:1]
	}
	for _, l := range looks {
		t.Run(fmt.Sprintf("%d dark %v", l.width, l.dark), func(t *testing.T) {
			h.t = t
			b := h.tab(l)
			for _, page := range allPages() {
				b.open(page)
				if l.width >= desk.width || len(page) < 60 {
					b.isAccessible(page)
				}
				b.fits(page)
				if !testing.Short() {
					b.isStill(page)
				}
				if title := eval[string](b, "document.title"); title == "taken" || title == "" {
					t.Errorf("%s has the title %q", page, title)
				}
				b.isClean(page)
			}
		})
	}
}
