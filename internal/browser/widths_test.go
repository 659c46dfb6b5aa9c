package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein/adapters/dashboard"
)

// kinds are a page of each kind.
func kinds() []string {
	return []string{
		"", "queue?q=orders", "shards?q=wide", "jobs?q=orders&list=retries", "busy", "morgue?q=orders",
		"unreadable?q=orders", "tracked?q=orders", "errors",
		"schedules", "schedules?state=paused",
		"settings?q=orders&version=0&max-running=20&morgue-age=30d",
		"backfill?q=orders&name=yearly&id=tenant-7&from=2001-01-01T00:00&to=2020-01-01T00:00",
		"named?q=orders&name=yearly", "schedule?q=orders&name=yearly&id=tenant-7",
		"nodes", at("server", "node", hostile[1]), "store", "audit", "search?for=twice", "sheet?q=orders&op=purge",
		at("id", "q", "orders", "id", hostile[0]),
	}
}

// At every width pages fit: nothing is wider than the window or scrolls sideways, no text stands
// in another or is cut off without a title that has all of it, short ids stay in a line, and the
// figures of rows that have no heads above them have names.
func TestWidths(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	h.store.grown.Store(true)
	pages := allPages
	if testing.Short() {
		pages = kinds
	}
	b := h.tab(desk)
	b.open("")
	b.says("23 h 59 min")
	for _, page := range pages() {
		b.open(page)
		b.do(chromedp.Evaluate[chromedp.Void](fitting))
		for _, width := range []int64{400, 768, 1024, 1280, 1440, 1920} {
			b.do(chromedp.EmulateViewport(width, 900))
			for _, wrong := range append(b.tooWide(), eval[[]string](b, "fitting()")...) {
				t.Errorf("%d wide, %q: %s", width, page, wrong)
			}
		}
	}
}

// fitting finds elements that do not fit on a page.
const fitting = `window.fitting = () => {
  const wrong = [], say = (what, e) => wrong.push(what + ": " + (e.textContent || "").trim().slice(0, 60) + " in " + (e.closest("td, th, p, dd, li, text, h1, h2") || e).outerHTML.slice(0, 60));
  const hidden = (e) => e.closest(".sr, .skip, title, option, script, noscript, details:not([open]) > :not(summary), [hidden]") || !e.checkVisibility({visibilityProperty: true});
  const clips = (e) => { const s = getComputedStyle(e); return s.overflowX !== "visible" && !(e instanceof SVGElement) && e.matches("body *"); };
  const boxes = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || hidden(e) || e.closest(".chosenbar")) continue;
    const range = document.createRange();
    range.selectNodeContents(n);
    for (const r of range.getClientRects()) {
      let {left, right, top, bottom} = r, cut = null;
      for (let up = e; up && up !== document.body; up = up.parentElement) {
        if (!clips(up)) continue;
        const c = up.getBoundingClientRect();
        if (right > c.right + 1 || left < c.left - 1) cut = up;
        left = Math.max(left, c.left); right = Math.min(right, c.right); top = Math.max(top, c.top); bottom = Math.min(bottom, c.bottom);
      }
      if (cut && !cut.closest("[title], pre, select") && !e.closest("[title]")) say("cut off", e);
      if (right - left > 2 && bottom - top > 2) boxes.push({left, right, top, bottom, e});
    }
  }
  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - 3; j++) {
      const a = boxes[i], b = boxes[j];
      if (a.e !== b.e && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1) say("overlaps \"" + b.e.textContent.trim().slice(0, 40) + "\"", a.e);
    }
  }
  for (const e of document.querySelectorAll(".scroll")) if (!hidden(e) && e.scrollWidth > e.clientWidth + 1) wrong.push("scrolls sideways by " + (e.scrollWidth - e.clientWidth) + ": " + e.getAttribute("aria-label"));
  for (const e of document.querySelectorAll("td.id .id")) if (e.textContent.length <= 24 && e.getBoundingClientRect().height > 30) say("wraps", e);
  for (const table of document.querySelectorAll("table.rows, table.queues")) {
    if (hidden(table) || getComputedStyle(table.tHead).display !== "none") continue;
    for (const e of table.querySelectorAll("td.n, td.span, td.owner, td.of")) if (!hidden(e) && e.textContent.trim() && ["none", ""].includes(getComputedStyle(e, "::before").content.replaceAll('"', ""))) say("has no name", e);
  }
  return [...new Set(wrong)].slice(0, 8);
}`
