package browser_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein/adapters/dashboard"
)

// The page of errors fits and is accessible at the widths of the drawings, with all rows closed and
// with one open, which is an address.
func TestErrors(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	h.settle()
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
