package browser_test

import (
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/internal/tier"
)

// A browser that keeps nothing for a site refuses access to its storage: pages stay live, and
// times can be switched.
func TestPagesNeedNoStorage(t *testing.T) {
	tier.Long(t, "waits for a page to update itself")
	h := newHouse(t, dashboard.Options{})
	b := h.tab(desk)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `Object.defineProperty(window, "localStorage", {get() { throw new DOMException("blocked", "SecurityError"); }});`,
	})
	b.open("")
	b.until(`document.getElementById("age").textContent.endsWith(" ago")`)
	b.do(chromedp.Click("#zone"))
	b.until(`document.querySelector("#zone .zone").textContent === "local time"`)
	b.isClean("the overview without storage")
}
