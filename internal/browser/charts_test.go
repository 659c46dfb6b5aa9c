package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein/adapters/dashboard"
)

// Texts of charts have one size at every width, and the figures of each step of time can be read by
// the pointer, by arrow keys, and without scripts.
func TestChartsAreRead(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	sizes := map[float64]bool{}
	for _, width := range []int64{400, 1920} {
		b := h.tab(look{width: width, height: 900})
		b.open("queue?q=orders")
		b.until(`document.querySelector(".plot rect")`)
		sizes[eval[float64](b, `document.querySelector(".ticks text").getBoundingClientRect().height`)] = true
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".plot").focus()`))
		b.until(`/ UTC: .* done, .* failed$/.test(document.querySelector(".reading").textContent)`)
		last := eval[string](b, `document.querySelector(".reading").textContent`)
		b.do(chromedp.KeyEvent("\u0302")) // the arrow to the left
		b.until(`document.querySelector(".reading").textContent !== ` + quoted(last))
		b.isClean("charts")
	}
	if len(sizes) != 1 {
		t.Errorf("the texts of charts have the heights %v", sizes)
	}
	b := h.tab(look{width: 1280, height: 900, plain: true})
	b.open("queue?q=orders")
	if !eval[bool](b, `[...document.querySelectorAll(".plot rect title")].some((e) => / done, \d+ failed$/.test(e.textContent))`) {
		t.Error("without scripts no chart has a title")
	}
}
