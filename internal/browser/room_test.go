package browser_test

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// grow gives a queue and its shards figures that take as much room as any: a lag of "23 h 59 min",
// numbers of five digits.
func grow(stats *ports.QueueStats) {
	oldest := core.Head{Due: stats.Now - core.Instant((24*time.Hour - time.Minute).Microseconds()), OK: true}
	sum := ports.Counts{}
	for at := range stats.Shards {
		s := &stats.Shards[at]
		s.Counts = ports.Counts{
			Fresh:       44_444,
			Retrying:    44_444,
			Claimed:     88_888,
			Dead:        88_888,
			Quarantined: s.Quarantined,
			Oldest:      oldest,
		}
		sum = ports.SumCounts(sum, s.Counts)
	}
	stats.Counts = sum
}

// The texts beside a figure stay where they are while the figure becomes as wide as it can. New
// faults may appear above it.
func TestFiguresHaveRoom(t *testing.T) {
	tier.Long(t, "waits for ten looks at the store")
	h := newHouse(t, dashboard.Options{})
	h.push(h.wide, "one", time.Hour, "p")
	h.push(h.orders, "one", time.Hour, "p")
	b := h.tab(desk)
	for _, path := range []string{"", "queue?q=wide", "shards?q=wide", "queue?q=orders", "shards?q=orders"} {
		h.store.grown.Store(false)
		b.open(path)
		b.until(`!document.body.innerText.includes("23 h 59 min")`)
		b.do(chromedp.Evaluate[chromedp.Void](places))
		before := eval[[]string](b, "places()")
		h.store.grown.Store(true)
		b.says("23 h 59 min")
		if diff := cmp.Diff(before, eval[[]string](b, "places()")); diff != "" {
			t.Errorf("%q: figures that grow have moved what stands beside them (-before +after):\n%s", path, diff)
		}
	}
}

// Running times do not move the texts beside or below them, on any page.
func TestTimesHaveRoom(t *testing.T) {
	tier.Long(t, "opens every page twice")
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	h.settle()
	for _, l := range []look{desk, {width: 400, height: 800}} {
		b := h.tab(l)
		call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: later})
		for _, path := range allPages() {
			b.open(path)
			b.do(chromedp.Evaluate[chromedp.Void](places + `; document.getElementById("stop")?.click()`))
			before := eval[[]string](b, "places(true)")
			b.do(chromedp.Evaluate[chromedp.Void](
				"window.ahead = (24 * 60 - 1) * 60000; window.ticked = false; setTimeout(() => window.ticked = true, 60)",
			))
			b.until("ticked")
			if diff := cmp.Diff(before, eval[[]string](b, "places(true)")); diff != "" {
				t.Errorf("%d wide, %q: times that went on have moved what stands beside them (-before +after):\n%s",
					l.width, path, diff)
			}
		}
	}
}

// later lets a page's clock be put ahead, and makes the page do its work of each second twenty
// times as often.
const later = `const now = Date.now, every = setInterval; window.ahead = 0; Date.now = () => now.call(Date) + window.ahead;
window.setInterval = (what, ms) => every(what, ms / 20);`

// places returns where heads of columns, rows, terms of figures and their containers begin, from
// the left and from above.
const places = `window.places = (down) => [...document.querySelectorAll("h2, thead th, tbody tr, dt, .top > *, .split > *")].map((e) => {
  const r = e.getBoundingClientRect();
  return (e.matches("th, dt") ? e.textContent : e.tagName) + " " + Math.round(r.left) + (down ? "," + Math.round(r.top + scrollY) : "");
})`
