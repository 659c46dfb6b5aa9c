package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/inspect"
)

// Texts of charts have one size at every width, and the figures of each step of time can be read by
// the pointer, by arrow keys, and without scripts.
func TestChartsAreRead(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	h.hasPast("orders")
	sizes := map[float64]bool{}
	b := h.tab(desk)
	b.open("queue?q=orders")
	b.until(`document.querySelector(".plot rect")`)
	for _, width := range []int64{400, 1920} {
		b.do(chromedp.EmulateViewport(width, 900))
		sizes[eval[float64](b, `document.querySelector(".ticks text").getBoundingClientRect().height`)] = true
	}
	if len(sizes) != 1 {
		t.Errorf("the texts of charts have the heights %v", sizes)
	}
	if !strings.Contains(h.get("queue?q=orders"), " failed a minute</title></rect>") {
		t.Error("the page as it comes has no figures of steps of time")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".plot").focus()`))
	b.until(`/ UTC: .* done, .* failed a minute$/.test(document.querySelector(".reading").textContent)`)
	last := eval[string](b, `document.querySelector(".reading").textContent`)
	b.key(kb.ArrowLeft)
	b.until(`document.querySelector(".reading").textContent !== ` + quoted(last))
	b.isClean("charts")
}

// hasPast waits until the store has a minute of a queue's past. The dashboard reads it rarely.
func (h *house) hasPast(queue string) {
	h.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		minutes, err := h.inspect.History(h.t.Context(), queue, inspect.HistoryOptions{})
		h.must(err)
		if len(minutes) > 0 {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s never has a past", queue)
		}
	}
}
