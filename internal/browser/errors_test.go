package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein/adapters/dashboard"
)

// The page of errors fits and is accessible at the widths of the drawings, with all rows closed and
// with one open, which is an address.
func TestErrors(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	for _, l := range []look{
		{width: 1440, height: 900}, {width: 1440, height: 900, dark: true},
		{width: 1024, height: 900}, {width: 390, height: 844}, {width: 390, height: 844, dark: true},
	} {
		t.Run(fmt.Sprintf("%d dark %v", l.width, l.dark), func(t *testing.T) {
			h.t = t
			b := h.tab(l)
			for _, open := range []bool{false, true} {
				if b.open("errors"); open {
					b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".errors [aria-expanded]").click()`))
					b.says("Close")
				}
				b.do(chromedp.Evaluate[chromedp.Void](fitting))
				for _, wrong := range append(b.tooWide(), eval[[]string](b, "fitting()")...) {
					t.Errorf("open %v: %s", open, wrong)
				}
				b.isAccessible(fmt.Sprintf("errors, open %v", open))
			}
		})
	}
}

// The change of a payload fits and is accessible, with and without JSON that breaks, and works
// without scripts.
func TestEditAPayload(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.push(h.orders, "edited", time.Hour, `{"number": 1000034, "what": "paid", "method": "card", "note": "`+
		strings.Repeat("long ", 60)+`"}`)
	for _, l := range []look{
		{width: 1440, height: 900}, {width: 1024, height: 900, dark: true},
		{width: 390, height: 844}, {width: 390, height: 844, plain: true},
	} {
		t.Run(fmt.Sprintf("%d dark %v plain %v", l.width, l.dark, l.plain), func(t *testing.T) {
			h.t = t
			b := h.tab(l)
			b.open(at("id", "q", "orders", "id", "edited"))
			b.unfold("paid")
			b.unfold("edit")
			for _, text := range []string{`{"number": 1000034, "what": "paid"`, `{"number": 1000034, "what": "invoice"}`} {
				b.do(chromedp.SetValue("textarea", text))
				b.press(map[bool]string{true: "Show the change …", false: "Show the change"}[strings.HasSuffix(text, `"paid"`)])
				b.says("The change")
				if !l.plain {
					b.do(chromedp.Evaluate[chromedp.Void](fitting))
					for _, wrong := range append(b.tooWide(), eval[[]string](b, "fitting()")...) {
						t.Errorf("%s: %s", text, wrong)
					}
					b.isAccessible("the change of a payload")
				}
			}
			b.says("Store and run now")
		})
	}
}
