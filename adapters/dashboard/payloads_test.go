package dashboard

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
)

// morePayloads is the link to a further page of payloads.
var morePayloads = regexp.MustCompile(`href="(id\?[^"]*after=[^"]*)">More payloads`)

func TestThePageOfAnIDHasFurtherPayloads(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, numbered("p", 250)...)
	h.end("orders", core.Buried, "boom")
	h.push("orders", "a", 0, "queued")
	page := h.get("/id?q=orders&id=a")
	says(t, page, "These are the first 100 of 250.")
	shown := strings.Count(page, `class="payload"`)
	for _, want := range []string{"Payloads here: 100 of 250.", "Payloads here: 50 of 250."} {
		link := morePayloads.FindStringSubmatch(page)
		if link == nil {
			t.Fatalf("no link to more payloads:\n%s", page)
		}
		page = h.get("/" + html.UnescapeString(link[1]))
		says(t, page, want, "First payloads")
		shown += strings.Count(page, `class="payload"`) - 1 // the queued one is on each
	}
	if morePayloads.MatchString(page) {
		t.Error("the last page has a link to more payloads")
	}
	if shown != 251 {
		t.Errorf("the pages show %d payloads; want 251", shown)
	}
}
