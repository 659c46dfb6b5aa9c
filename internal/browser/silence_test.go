package browser_test

import (
	"testing"

	"github.com/skeinq/skein/adapters/dashboard"
)

// When the store of an open page becomes silent, the page says so and turns its actions off, until
// the store answers again.
func TestAnOpenPageOfASilentStore(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	b := h.tab(desk)
	b.open("queue?q=orders")
	const (
		says = `document.body.innerText.includes("The store is silent")`
		off  = `[...document.querySelectorAll("form[method=post]")].every((f) => f.inert)`
		old  = `document.getElementById("age").textContent.endsWith(" old") && document.querySelector("main.stale")`
	)
	if eval[bool](b, says+"||"+off) {
		t.Error("it is silent from the start")
	}

	h.store.silent.Store(true)
	b.until(says + "&&" + off + "&&" + old)
	b.isAccessible("a silent store")
	for _, page := range []string{"", "jobs?q=orders", "id?q=orders&id=tenant-7", "schedules", "store"} {
		b.open(page)
		b.until(says + "&&" + off + "&&" + old)
		b.fits(page)
	}

	b.open("queue?q=orders")
	h.store.silent.Store(false)
	b.press("Try now")
	b.until("!(" + says + ") && !(" + off + ") && !(" + old + ")")
	b.isClean("a store that was silent")
}

// An open page that can't be made while the store is silent keeps what it has, under the banner.
func TestAnOpenListOfASilentStore(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	b := h.tab(desk)
	b.open("jobs?q=orders")
	const (
		says = `document.body.innerText.includes("The store is silent")`
		off  = `[...document.querySelectorAll("form[method=post]")].every((f) => f.inert)`
		rows = `!!document.querySelector("main.stale tbody tr") && document.querySelector(".banner[hidden] p")`
	)

	h.store.listless.Store(true)
	h.store.silent.Store(true)
	b.until(says + "&&" + off + "&&" + rows)
	h.store.silent.Store(false)
	h.store.listless.Store(false)
	b.until("!(" + says + ") && !(" + off + ") && !document.querySelector('main.stale')")
}
