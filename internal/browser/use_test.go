package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// polls counts how often a page has had the occasion to poll since polls was set to 0, and how
// often it has polled. The page has an occasion each 25 ms instead of each 500 ms, and its clock
// is ahead.
const polls = `window.polls = window.sent = window.unanswered = window.ahead = 0;
const now = Date.now, every = setInterval, send = XMLHttpRequest.prototype.send;
Date.now = () => now.call(Date) + window.ahead;
window.setInterval = (f, ms) => f.name === "ask" ? every(() => { f(); window.polls++; }, ms / 20) : every(f, ms);
XMLHttpRequest.prototype.send = function () {
  window.sent++;
  window.unanswered++;
  this.addEventListener("loadend", () => window.unanswered--);
  send.call(this);
};`

// countsPolls has the pages that the tab opens count their polls.
func (b *tab) countsPolls() {
	b.t.Helper()
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: polls})
}

// asksNothing checks that the page does not poll at twenty occasions, although its pause is over.
func (b *tab) asksNothing(what string) {
	b.t.Helper()
	b.until("window.unanswered === 0")
	b.do(chromedp.Evaluate[chromedp.Void]("window.ahead += 3600000; window.polls = window.sent = 0"))
	b.until("window.polls >= 20")
	if n := eval[int](b, "window.sent"); n > 0 {
		b.t.Errorf("%s has asked %d times", what, n)
	}
}

// Figures change in their places while a page is open, and rows come once nobody is there.
func TestLive(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.push(h.wide, "first", 0, "p")
	b := h.tab(desk)
	b.countsPolls()
	b.open("")
	b.do(chromedp.Evaluate[chromedp.Void]("window.same = true; window.shifted = []"))
	h.push(h.wide, "second", 0, "p")
	b.until(
		`[...document.querySelectorAll(".queues tr")].some((r) => r.textContent.includes("wide") && r.cells[3].textContent === "2")`,
	)
	b.isStill("the overview while a figure changes")

	// The pointer is on the table: a new queue is not put under it before it has gone.
	b.do(chromedp.MouseEvent("mouseMoved", 200,
		eval[float64](b, `document.querySelector(".queues tbody").getBoundingClientRect().y + 5`)))
	h.push(h.paused, "third", 0, "p")
	b.until(`!document.getElementById("apply").hidden`)
	if strings.Contains(eval[string](b, `document.querySelector(".queues").innerText`), "paused") {
		t.Error("a row came under the pointer")
	}
	b.isStill("the overview while a row waits")
	b.do(chromedp.Click("#apply"))
	b.until(`document.querySelector(".queues").innerText.includes("paused")`)
	if !eval[bool](b, "window.same") {
		t.Error("the page was loaded anew")
	}

	b.do(chromedp.Click("#stop"))
	b.says("stopped")
	b.asksNothing("a page that was stopped")
	b.do(chromedp.Click("#stop"))
	b.until("document.getElementById('age').textContent.endsWith('ago')")
	b.until("window.sent > 0")
	b.isClean("the overview")
}

// Marks stay with their rows when a list is replaced by a newer one, and the action has them.
func TestMarksSurviveAnUpdate(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	for n := range 4 {
		h.push(h.orders, fmt.Sprintf("dead-%d", n), 0, "die")
	}
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 4 })
	b := h.tab(desk)
	b.open("morgue?q=orders")
	for n := range 3 {
		b.mark(fmt.Sprintf("dead-%d", n))
	}
	_, err := h.inspect.Purge(t.Context(), "orders", inspect.DeadIDs("dead-2"))
	h.must(err)
	h.push(h.orders, "dead-late", 0, "die")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 4 })
	b.until(`!document.getElementById("apply").hidden`)
	b.do(chromedp.Click("#apply"))
	b.until(`document.querySelector(".letters").innerText.includes("dead-late")`)
	checked := eval[[]string](b, `[...document.querySelectorAll("input[name=id]:checked")].map((b) => b.value).sort()`)
	if !slices.Equal(checked, []string{"dead-0", "dead-1"}) {
		t.Errorf("after an update %q are marked", checked)
	}
	if count := eval[string](
		b, `document.querySelector(".count").textContent`,
	); count != "2 marked, 1 no longer listed" {
		t.Errorf("the bar says %q", count)
	}
	b.press("Revive")
	b.says("2 queued again")
	b.isClean("the morgue")
}

// The title, the icon and the counts of tabs follow a live update.
func TestTitlesFollow(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.declare(h.paused)
	b := h.tab(desk)
	b.open("morgue?q=paused")
	b.do(chromedp.Evaluate[chromedp.Void]("window.same = true; window.shifted = []"))
	if title := eval[string](b, "document.title"); strings.HasPrefix(title, "(") {
		t.Fatalf("with nothing wrong the title is %q", title)
	}
	h.push(h.paused, "one", 0, "p")
	h.must(h.inspect.Pause(t.Context(), "paused"))
	b.until(
		`document.title.startsWith("(") && document.querySelector("link[rel=icon]").href.includes("wrong.") && document.querySelector(".sub").innerText.includes("Jobs 1")`,
	)
	if !eval[bool](b, "window.same") {
		t.Error("the page was loaded anew")
	}
	b.isStill("the frame while counts change")
	b.isClean("the morgue")
}

// A figure that is no longer 0 is no longer grey, though the row stays the same.
func TestAClassThatIsGoneIsRemoved(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.declare(h.paused)
	b := h.tab(desk)
	b.open("shards?q=paused")
	row := fmt.Sprintf(`document.querySelector(".shardlist tr[data-k='%d']")`, core.ShardOf("due", 2))
	if html := eval[string](b, row+".cells[1].innerHTML"); !strings.Contains(html, `class="zero"`) {
		t.Fatalf("without a due job the lag is %s", html)
	}
	b.do(chromedp.Evaluate[chromedp.Void](row + ".same = true"))
	h.push(h.paused, "due", 0, "p")
	b.until(row + `.cells[1].textContent !== "0 s"`)
	if html := eval[string](b, row+".cells[1].innerHTML"); strings.Contains(html, "zero") ||
		!eval[bool](b, row+".same") {
		t.Errorf("with a due job the lag is %s, or it is of another row", html)
	}
	b.isClean("the table of shards")
}

// A hidden tab sends no requests.
func TestAHiddenTabAsksNothing(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	b := h.tab(desk)
	b.countsPolls()
	b.open("")
	b.do(chromedp.Evaluate[chromedp.Void](
		`Object.defineProperty(document, "hidden", {value: true, configurable: true})`,
	))
	b.asksNothing("a tab that nobody sees")
	b.do(chromedp.Evaluate[chromedp.Void](
		`delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`,
	))
	b.until("window.sent > 0")
}

func (b *tab) key(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// slash presses the key in one event, as keyboards do: the page's reaction decides whether a
// character comes.
func (b *tab) slash() {
	b.t.Helper()
	call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyDown, Text: "/", Key: "/", Code: "Slash",
	})
	call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyUp, Key: "/", Code: "Slash",
	})
}

func (b *tab) goesTo(page string, params ...string) {
	b.t.Helper()
	b.until(fmt.Sprintf("location.pathname === %s", quoted("/"+page)))
	for n := 0; n+1 < len(params); n += 2 {
		b.until(fmt.Sprintf("new URLSearchParams(location.search).get(%s) === %s",
			quoted(params[n]), quoted(params[n+1])))
	}
	b.until(`document.readyState === "complete"`)
}

// Everything can be reached by the keyboard alone.
func TestKeyboard(t *testing.T) {
	tier.Long(t, "makes some forty requests of the browser, one key at a time")
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	b := h.tab(desk)
	b.open("")
	b.key(kb.Tab)
	if text := eval[string](b, "document.activeElement.textContent"); text != "Skip to the content" {
		t.Errorf("the first tab leads to %q", text)
	}
	if !eval[bool](b, `document.activeElement.getBoundingClientRect().x >= 0`) {
		t.Error("the link that has the focus can't be seen")
	}
	b.slash()
	b.key("order-007" + kb.Enter)
	b.goesTo("id", "q", "wide", "id", "order-007")
	b.says("order-007 in wide")
	b.key(".")
	b.until(`document.getElementById("stop").getAttribute("aria-pressed") === "true"`)
	b.key("g")
	b.goesTo("")

	// A queue is found by a part of its name, paused and resumed.
	b.slash()
	b.key("wid" + kb.Enter)
	b.goesTo("queue", "q", "wide")
	b.tabTo("Pause the queue")
	b.key(kb.Enter)
	b.says("The queue is paused")
	b.tabTo("Resume the queue")
	b.key(kb.Enter)
	b.says("The queue is active")

	// The map of its shards.
	b.do(chromedp.Focus("[data-region=map] .scroll"))
	b.key(kb.ArrowRight)
	b.key(kb.ArrowDown)
	b.key(kb.ArrowRight)
	b.until(`document.getElementById("strip").textContent.startsWith("wide/41:")`)
	b.key(kb.Enter)
	b.goesTo("jobs", "q", "wide", "shard", "41")

	// Marks in a list.
	b.open("jobs?q=orders&list=scheduled")
	b.do(chromedp.Focus("input.all"))
	b.key(" ")
	b.says("7 marked")
	b.isClean("the keyboard")
}

// tabTo presses the tabulator until a control with a text has the focus, and shows it.
func (b *tab) tabTo(text string) {
	b.t.Helper()
	for range 60 {
		b.key(kb.Tab)
		if eval[bool](b, fmt.Sprintf(`document.activeElement.textContent.trim() === %s`, quoted(text))) {
			if eval[string](b, "getComputedStyle(document.activeElement).outlineStyle") == "none" {
				b.t.Errorf("%q has the focus and does not show it", text)
			}
			return
		}
	}
	b.t.Fatalf("the tabulator doesn't lead to %q", text)
}

// Without scripts the pages are the same, and the browser reloads them if that is switched on.
func TestWithoutScripts(t *testing.T) {
	tier.Long(t, "opens every page again, without scripts")
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	b := h.tab(look{width: 1280, height: 900, plain: true})
	b.open("")
	b.says("no server runs this queue")
	b.press("reload every 10 s")
	b.says("stop reloading")
	h.push(h.wide, "another", 0, "p")
	b.until(
		`[...document.querySelectorAll(".queues tr")].some((r) => r.textContent.includes("wide") && r.cells[3].textContent === "302")`,
	)
	b.press("stop reloading")
	for _, page := range allPages() {
		b.open(page)
		b.fits(page)
		if eval[string](b, "document.querySelector('h1').textContent") == "" {
			t.Errorf("%s has no heading", page)
		}
	}
	b.isClean("without scripts")
}

// Hostile ids lead from every list to their own page, and back.
func TestHostileIDs(t *testing.T) {
	tier.Long(t, "follows every link of four lists and searches for fifteen ids")
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	b := h.tab(desk)
	seen := map[string]bool{}
	for _, page := range []string{"jobs?q=orders", "jobs?q=orders&list=retries", "morgue?q=orders", "busy"} {
		b.open(page)
		for n := range eval[int](b, `document.querySelectorAll("main td.id a").length`) {
			b.open(page)
			b.do(chromedp.Evaluate[chromedp.Void](
				fmt.Sprintf(`window.before = true; document.querySelectorAll("main td.id a")[%d].click()`, n),
			))
			b.arrives()
			to, err := url.Parse(eval[string](b, "location.href"))
			h.must(err)
			seen[to.Query().Get("id")] = to.Path == "/id"
			if title := eval[string](b, "document.title"); title == "taken" {
				t.Errorf("a script of %s has run", to)
			}
		}
	}
	for _, id := range hostile {
		if !seen[id] {
			t.Errorf("no list leads to %q", id)
		}
		b.open("")
		b.do(chromedp.SetValue(".find input", id), chromedp.Evaluate[chromedp.Void]("window.before = true"),
			chromedp.Submit(".find input"))
		b.arrives()
		if found := eval[string](b, `new URLSearchParams(location.search).get("id")`); found != id ||
			!strings.Contains(eval[string](b, "location.pathname"), "/id") {
			t.Errorf("the search for %q leads to %q", id, found)
		}
	}
	b.isClean("hostile ids")
}

// A user who may only read gets no form.
func TestReadOnly(t *testing.T) {
	tier.Long(t, "runs axe on seven more pages; the forms of read-only pages are tested in adapters/dashboard")
	h := newHouse(t, dashboard.Options{API: httpapi.Options{ReadOnly: true}})
	h.furnish()
	b := h.tab(desk)
	for _, page := range []string{
		"", "queue?q=orders", "jobs?q=orders", "morgue?q=orders", "busy", "nodes", at("id", "q", "orders", "id", ".."),
	} {
		b.open(page)
		if n := eval[int](b, `document.querySelectorAll("form[method=post], input[type=checkbox]").length`); n > 0 {
			t.Errorf("%s has %d forms or marks", page, n)
		}
		b.isAccessible(page)
	}
	b.isClean("read-only")
}

// answers makes the page keep the live updates that it gets, before they are put into place.
const answers = `window.updates = []; const kept = XMLHttpRequest.prototype.send;
XMLHttpRequest.prototype.send = function () {
  this.addEventListener("load", () => {
    const all = this.response ? [...this.response.querySelectorAll("[data-k], [data-same]")] : [];
    window.updates.push({Status: this.status, Gaps: all.filter((e) => e.dataset.same).length, Rows: all.filter((e) => e.dataset.k).map((e) => e.dataset.k)});
  });
  kept.call(this);
};`

// A live update has only the rows that changed, and the page is then what it would be if it were
// loaded anew.
func TestALiveUpdateHasWhatChanged(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	h.settle()
	b := h.tab(desk)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: answers})
	b.open("shards?q=wide")
	id, row := "", 0
	for n := 0; id == "" || row > 50; n++ { // one of the first page
		id = fmt.Sprintf("another-%d", n)
		row = core.ShardOf(id, wideShards())
	}
	waiting := fmt.Sprintf(`document.querySelector(".shardlist tr[data-k='%d']").cells[2].textContent`, row)
	before := eval[string](b, waiting)
	h.push(h.wide, id, 0, "p")
	b.until(waiting + " !== " + quoted(before))
	type update struct {
		Status, Gaps int
		Rows         []string
	}
	for _, u := range eval[[]update](b, "window.updates") {
		if u.Status == http.StatusOK && (u.Gaps == 0 || !slices.Equal(u.Rows, []string{fmt.Sprint(row)})) {
			t.Errorf("one row has changed, and an update has %d gaps and the rows %q", u.Gaps, u.Rows)
		}
	}
	b.isWhatIsThere("the table of shards")
	b.open("")
	h.push(h.paused, "another", 0, "q")
	b.until(`document.querySelector(".queues tr[data-k=paused]").cells[3].textContent === "2"`)
	if n := eval[int](b, "window.updates.filter((u) => u.Status === 200 && u.Gaps === 0).length"); n > 0 {
		t.Errorf("%d updates of the overview have all of it", n)
	}
	b.isWhatIsThere("the overview")
	b.isClean("live updates")
}

// isWhatIsThere checks that the regions of an open page become those of the page that is loaded
// anew.
func (b *tab) isWhatIsThere(what string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`window.fresh = async () => {
	  const r = await new Promise((done) => {
	    const r = new XMLHttpRequest();
	    r.open("GET", location.href);
	    r.responseType = "document";
	    r.onload = () => done(r.response);
	    kept.call(r);
	  });
	  const texts = (d) => [...d.querySelectorAll("[data-region]")].map((e) => {
	    const c = e.cloneNode(true);
	    c.querySelectorAll("time, [data-clock]").forEach((t) => { t.textContent = ""; });
	    return c.textContent;
	  }).join("\n");
	  return [texts(document), texts(r)];
	}`))
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		texts := eval[[]string](b, "window.fresh()")
		if texts[0] == texts[1] {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s stays\n%s\nand is, if it is loaded anew,\n%s", what, texts[0], texts[1])
		}
	}
}

// A page that is not the dashboard's, such as the log-in of a proxy whose session is over, is no
// answer.
func TestAForeignPageIsNoAnswer(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	var over atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if over.Load() {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><title>Log in</title><form><input name=user></form>")
			return
		}
		h.board.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	h.url = proxy.URL + "/"
	b := h.tab(desk)
	b.countsPolls()
	b.open("")
	b.until("window.sent > 1")
	title := eval[string](b, "document.title")
	over.Store(true)
	b.says("The server of this page does not answer.")
	b.until(`window.sent = 0, true`)
	b.until("window.sent > 1 && window.unanswered === 0")
	if now, age := eval[string](b, "document.title"), eval[string](
		b, `document.getElementById("age").textContent`,
	); now != title || !strings.HasSuffix(age, " old") {
		t.Errorf("over a foreign page the title is %q, want %q, and its age %q", now, title, age)
	}
	over.Store(false)
	b.until(`document.getElementById("age").textContent.endsWith(" ago") && !document.body.innerText.includes("does not answer")`)
	b.isClean("a page whose proxy had answered for it")
}
