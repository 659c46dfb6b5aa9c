package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// look is how a tab shows pages.
type look struct {
	width, height int64
	dark, plain   bool // plain is without scripts
}

var desk = look{width: 1280, height: 900}

// tab is one of the browser's. It records what pages must not do.
type tab struct {
	t     testing.TB
	ctx   context.Context
	house *house
	mu    sync.Mutex
	wrong []string
}

// shifts adds up how far visible parts have moved by themselves.
const shifts = `window.shifted = []; new PerformanceObserver((list) => {
  for (const e of list.getEntries()) if (!e.hadRecentInput && e.value >= 0.0001)
    window.shifted.push(e.value.toFixed(4) + " " + e.sources.map((s) => s.node && (s.node.outerHTML || s.node.textContent || "").slice(0, 80)).join(" | "));
}).observe({type: "layout-shift", buffered: true});`

func (h *house) tab(l look) *tab {
	h.t.Helper()
	ctx, closeTab := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	h.t.Cleanup(closeTab)
	b := &tab{t: h.t, ctx: ctx, house: h}
	b.do(chromedp.EmulateViewport(l.width, l.height,
		func(p *emulation.SetDeviceMetricsOverrideParams, _ *emulation.SetTouchEmulationEnabledParams) {
			p.Mobile = l.width < 500
		}))
	h.must(chromedp.Listen(ctx, b.listen))
	scheme := map[bool]string{true: "dark", false: "light"}[l.dark]
	call(b, cdplog.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	call(b, page.Enable, page.EnableParams{})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.plain})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: shifts})
	return b
}

// call sends a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// listen keeps errors in the console, violations of the policy, dialogs, and requests to elsewhere.
func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.note("an exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.note("the console: %s", e.Type)
	case *cdplog.EventEntryAdded:
		b.note("the log: %s %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *page.EventJavascriptDialogOpening:
		b.note("a dialog: %s", e.Message)
		go func() { // not from within: it waits for the browser, and a tab that is closed needs no answer
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.house.url) && !strings.HasPrefix(e.Request.URL, "data:") {
			b.note("a request of %s", e.Request.URL)
		}
	}
}

func (b *tab) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page below the prefix.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.house.url + path))
}

// eval returns the value of an expression or a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// until waits until an expression is true in the page that is open then.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && is {
			return
		}
		if time.Now().After(end) || b.ctx.Err() != nil {
			b.t.Fatalf("it never is: %s (%v), at %s: %s", expression, err, eval[string](b, "location.href"), b.text())
		}
	}
}

func (b *tab) text() string {
	b.t.Helper()
	return eval[string](b, "document.body.innerText")
}

// says waits until the page shows a text.
func (b *tab) says(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body && document.body.innerText.includes(%s)", quoted(text)))
}

// press clicks the first button or link with a text, in view, as a pointer does, and waits until
// another page is there.
func (b *tab) press(text string) {
	b.t.Helper()
	b.within("document", text)
}

// within is press, below an element.
func (b *tab) within(element, text string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void]("window.before = true"))
	b.click(text, fmt.Sprintf(`[...(%s).querySelectorAll("button, a, summary")].find((e) => e.textContent.trim() === %s && e.getClientRects().length)`,
		element, quoted(text)))
	b.arrives()
}

// click clicks an element, the value of an expression, as a pointer does: in the middle of the
// window, since bars cover the edges.
func (b *tab) click(what, element string) {
	b.t.Helper()
	type point struct{ X, Y float64 }
	found := eval[*point](b, fmt.Sprintf(`(() => {
	  const e = %s;
	  if (!e) return null;
	  e.scrollIntoView({block: "center"});
	  const r = e.getClientRects()[0];
	  return {X: r.x + r.width / 2, Y: r.y + r.height / 2};
	})()`, element))
	if found == nil {
		b.t.Fatalf("there is no %q at %s: %s", what, eval[string](b, "location.href"), b.text())
	}
	b.do(chromedp.MouseClickXY(found.X, found.Y))
}

// arrives waits until a page without the mark is open.
func (b *tab) arrives() {
	b.t.Helper()
	b.until(`!window.before && document.readyState === "complete"`)
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be marshalled
	}
	return string(data)
}

// at is a page's address with parameters: name, value, …
func at(page string, params ...string) string {
	values := url.Values{}
	for n := 0; n+1 < len(params); n += 2 {
		values.Set(params[n], params[n+1])
	}
	return page + "?" + values.Encode()
}

// isClean checks that no fault was recorded in the tab, except those with the given texts.
func (b *tab) isClean(what string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		b.t.Errorf("%s: %s", what, w)
	}
	b.wrong = nil
}

// isStill checks that nothing on the page has moved by itself.
func (b *tab) isStill(what string) {
	b.t.Helper()
	for _, s := range eval[[]string](b, "window.shifted") {
		b.t.Errorf("%s: moved by itself: %s", what, s)
	}
}

// fits checks that the page is not wider than the window.
func (b *tab) fits(what string) {
	b.t.Helper()
	if wide := b.tooWide(); len(wide) > 0 {
		b.t.Errorf("%s is wider than the window: %q", what, wide)
	}
}

// tooWide returns how wide the page is and some of what makes it so, nothing if it fits.
func (b *tab) tooWide() []string {
	b.t.Helper()
	return eval[[]string](b,
		`document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] : ["width " + document.documentElement.scrollWidth].concat(
	  [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll, pre, svg, .skip")).map((e) => e.outerHTML.slice(0, 100)).slice(0, 5))`)
}
