package browser_test

import (
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/internal/tier"
)

// Times are in UTC until the user wants local ones, and stay so on the next page. Running times
// are not touched.
func TestTimesMayBeLocal(t *testing.T) {
	tier.Long(t, "concerns only how times are written")
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	b := h.tab(desk)
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	b.open("queue?q=orders")
	times := func() (at string, clock, title string) {
		return eval[string](b, `document.querySelector("footer time").textContent`),
			eval[string](b, `document.querySelector("svg [data-clock]").textContent`),
			eval[string](b, `document.querySelector("time[data-ago]").title`)
	}
	utc := regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$`)
	local := regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\+5:30$`)
	at, clock, title := times()
	if !utc.MatchString(at) || !utc.MatchString(title) || clock[3:] != "00" && clock[4:] != "0" {
		t.Errorf("at first times are %q, %q and %q", at, clock, title)
	}
	b.do(chromedp.Click("#zone"))
	b.says("times in local time")
	localAt, localClock, localTitle := times()
	if !local.MatchString(localAt) || !local.MatchString(localTitle) || localClock == clock {
		t.Errorf("local times are %q, %q and %q", localAt, localClock, localTitle)
	}
	b.open("morgue?q=orders")
	b.says("times in local time")
	if at := eval[string](b, `document.querySelector("footer time").textContent`); !local.MatchString(at) {
		t.Errorf("the next page has %q", at)
	}
	b.isClean("local times")
}

// The shown form of a payload is marked to be copied.
func TestPayloadsAreCopied(t *testing.T) {
	tier.Long(t, "concerns only the copy button")
	h := newHouse(t, dashboard.Options{})
	h.push(h.wide, "a", 0, `{"n":1}`)
	b := h.tab(desk)
	b.open(at("id", "q", "wide", "id", "a"))
	b.unfold(`{"n":1}`)
	b.do(chromedp.Click(".copy"))
	b.until(`["Copied", "Marked"].includes(document.querySelector(".copy").textContent)`)
	if marked := eval[string](b, "getSelection().toString()"); marked != "{\n  \"n\": 1\n}" {
		t.Errorf("what is marked is %q", marked)
	}
	b.isClean("a copy")
}
