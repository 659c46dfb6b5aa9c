package browser_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/skeinq/skein/adapters/dashboard"
)

// newStores returns a house whose address has several stores: its own, "production", and others
// with nothing in them.
func newStores(t *testing.T, others ...string) *house {
	t.Helper()
	h := newHouse(t, dashboard.Options{})
	mounts := []dashboard.Mount{{Name: "production", Dashboard: h.board}}
	for _, name := range others {
		mounts = append(mounts, dashboard.Mount{Name: name, Dashboard: newHouse(t, dashboard.Options{}).board})
	}
	stores, err := dashboard.NewStores(mounts...)
	h.must(err)
	listener := httptest.NewServer(stores)
	t.Cleanup(listener.Close)
	h.url = listener.URL + "/"
	return h
}

// Another store is chosen by the keyboard, and the picker is left by Escape.
func TestTheStoresAreChosenByTheKeyboard(t *testing.T) {
	h := newStores(t, "billing", strings.Repeat("long-name-", 6))
	h.push(h.wide, "one", 0, "p")
	b := h.tab(desk)
	b.open("")
	b.goesTo("production/")
	b.isAccessible("a closed picker")
	b.tabTo("Stores")
	b.key(kb.Enter)
	b.until(`document.querySelector(".stores").open`)
	b.isAccessible("an open picker")
	b.key(kb.Tab)
	b.key(kb.Escape)
	b.until(`!document.querySelector(".stores").open && document.activeElement.textContent === "Stores"`)
	b.key(kb.Enter)
	b.tabTo("billing")
	b.key(kb.Enter)
	b.goesTo("billing/")
	b.until(`document.title.endsWith("· billing")`)
	if name := eval[string](
		b,
		`document.querySelector(".top .brand").textContent + document.querySelector(".stores [aria-current]").textContent`,
	); name != "billingbilling" {
		t.Errorf("the bar and the picker say %q", name)
	}
	b.isClean("the picker of stores")
}

// It needs no scripts, and fits on phones and desks, open and closed.
func TestTheStoresNeedNoScripts(t *testing.T) {
	h := newStores(t, "billing", strings.Repeat("long-name-", 6), "a", "b", "c", "d")
	b := h.tab(look{width: 400, height: 800, plain: true})
	b.open("production/queue?q=orders")
	b.do(chromedp.Click(".stores summary"))
	for _, width := range []int64{400, 1440} {
		b.do(chromedp.EmulateViewport(width, 900), chromedp.Evaluate[chromedp.Void](fitting))
		for _, wrong := range slices.Concat(b.tooWide(), eval[[]string](b, "fitting()")) {
			if !strings.HasPrefix(wrong, "overlaps") { // the purpose of an open list
				t.Errorf("%d wide: %s", width, wrong)
			}
		}
	}
	b.press("billing")
	b.goesTo("billing/")
	b.isClean("the picker without scripts")
}
