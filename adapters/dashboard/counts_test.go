package dashboard

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// headOf returns the title of a page, and the icon's file without its digest.
func headOf(page string) (title, icon string) {
	_, rest, _ := strings.Cut(page, "<title>")
	title, _, _ = strings.Cut(rest, "</title>")
	_, rest, _ = strings.Cut(page, `rel="icon" href="assets/`)
	icon, _, _ = strings.Cut(rest, ".")
	return title, icon
}

func TestTabsAndTitlesHaveCounts(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	page := h.get("/morgue?q=orders")
	says(t, page, "Jobs 0 Running 0 Morgue 0")
	if title, icon := headOf(page); strings.HasPrefix(title, "(") || icon != "icon" {
		t.Errorf("with nothing wrong the title is %q, the icon %q", title, icon)
	}
	h.ended(core.Buried, "boom", "a", "b")
	h.push("orders", "c", 0, "p")
	if err := inspect.New(h.store, inspect.Options{}).Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/morgue?q=orders", "/queue?q=orders", "/jobs?q=orders", "/id?q=orders&id=a"} {
		page := h.get(target)
		says(t, page, "Jobs 1 Running 0 Morgue 2")
		if title, icon := headOf(page); !strings.HasPrefix(title, "(") || icon != "wrong" {
			t.Errorf("%s: the title is %q, the icon %q", target, title, icon)
		}
	}
	if title, icon := headOf(h.get("/queue?q=mails")); strings.HasPrefix(title, "(") || icon != "icon" {
		t.Errorf("a queue with nothing wrong has the title %q, the icon %q", title, icon)
	}
}

// Users who may see one queue get no information about others' faults.
func TestCountsKeepToRights(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "mails" {
			return errors.New("another's")
		}
		return nil
	}}})
	h.declare("mails", 1)
	h.push("orders", "c", 0, "p")
	if err := inspect.New(h.store, inspect.Options{}).Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	page := h.get("/queue?q=mails")
	if title, _ := headOf(page); strings.HasPrefix(title, "(") || strings.Contains(page, `<span class="sr"> amber`) {
		t.Errorf("the title is %q", title)
	}
}
