package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/ports"
)

// The overview, a queue and servers fit at each width that they are drawn for, in both colour schemes,
// with names of 128 characters, and nobody with poor eyesight or a poor pointer is kept out.
func TestOverviewQueueAndServersAsDrawn(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	long := "eu-west-1." + strings.Repeat("tenant.", 15) + ".live-01"
	h.push(skein.NewQueue(long, skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}, Shards: 3}), "one", 0, "p")
	lost := ports.Node{
		Owner:  "lost",
		Name:   strings.Repeat("node-", 24) + "lost",
		Host:   "host",
		Queues: []string{"wide", long},
		Lanes:  4,
	}
	_, err := h.store.Announce(t.Context(), ports.AnnounceRequest{Node: lost, TTL: time.Millisecond})
	h.must(err)
	h.hasPast("orders")
	h.settleOn("2 queues")

	looks := []look{
		{width: 1024, height: 800}, {width: 390, height: 844}, {width: 1440, height: 900},
		{width: 390, height: 844, dark: true}, {width: 1024, height: 800, dark: true}, {width: 1440, height: 900, dark: true},
	}
	if testing.Short() {
		looks = looks[:1]
	}
	for _, l := range looks {
		b := h.tab(l)
		for _, page := range []string{
			"", "queue?q=orders", "queue?q=orders&span=24h",
			"queue?q=orders&span=30d", at("queue", "q", long), "server?node=lost",
			at("server", "node", hostile[1]), "nodes",
		} {
			what := fmt.Sprintf("%s at %d, dark %v", page, l.width, l.dark)
			b.open(page)
			b.isAccessible(what)
			b.fits(what)
			b.do(chromedp.Evaluate[chromedp.Void](fitting))
			for _, wrong := range eval[[]string](b, "fitting()") {
				t.Errorf("%s: %s", what, wrong)
			}
			b.isClean(what)
		}
	}
}

// A long name is cut before its last eight characters, so that names which differ at the end can be
// told apart, and copying it gives the whole.
func TestLongNamesKeepTheirEnd(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	long := "eu-west-1." + strings.Repeat("tenant.", 15) + ".live-01"
	h.push(skein.NewQueue(long, skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}, Shards: 3}), "one", 0, "p")
	b := h.tab(look{width: 1024, height: 800})
	b.open("")
	b.until(`document.querySelector(".queues .nm")`)
	if !eval[bool](b, `(() => {
	  const nm = document.querySelector(".queues .nm"), [head, tail] = nm.children, cell = nm.closest("th").getBoundingClientRect();
	  return head.scrollWidth > head.clientWidth && tail.scrollWidth <= tail.clientWidth + 1 &&
	    tail.getBoundingClientRect().right <= cell.right + 1 && nm.getBoundingClientRect().height < 30;
	})()`) {
		t.Error("the end of a long name is not shown, or the name grows its row")
	}
	if got := eval[string](b, `(() => {
	  const copied = new ClipboardEvent("copy", {clipboardData: new DataTransfer(), cancelable: true, bubbles: true});
	  getSelection().selectAllChildren(document.querySelector(".queues .nm"));
	  document.dispatchEvent(copied);
	  return copied.clipboardData.getData("text/plain");
	})()`); got != long {
		t.Errorf("copying gives %q, want %q", got, long)
	}
}

// At the end of a long list no row and no link to the next page is behind the bar of actions.
func TestThePagerAndTheBarCoverNoRow(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	for n := range 120 {
		h.push(h.wide, fmt.Sprintf("job-%03d", n), time.Hour, "p")
	}
	for _, width := range []int64{390, 1024, 1440} {
		b := h.tab(look{width: width, height: 800})
		b.open("jobs?q=wide")
		b.until(`document.querySelector(".pager a")`)
		b.do(chromedp.Evaluate[chromedp.Void](`scrollTo(0, document.body.scrollHeight)`))
		covered := eval[[]string](b, `[...document.querySelectorAll("[data-region=rows] tbody tr:nth-last-child(-n+3) a, .pager a")].filter((a) => {
		  a.scrollIntoView({block: "nearest"});
		  const r = a.getBoundingClientRect(), at = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
		  return !a.contains(at);
		}).map((a) => a.textContent)`)
		if len(covered) > 0 {
			t.Errorf("at %d these are covered: %q", width, covered)
		}
	}
}

// settleOn waits until the overview has a text.
func (h *house) settleOn(text string) {
	h.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(h.get(""), text); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("the overview never has %q: %s", text, h.get(""))
		}
	}
}
