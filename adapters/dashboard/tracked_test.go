package dashboard

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
)

func TestTrackedIDsHaveTheirVerdicts(t *testing.T) {
	h := newHouse(t, Options{})
	says(t, h.get("/queue?q=orders"), "tracked ids verdicts")
	says(t, h.get("/tracked?q=orders"), "No id is tracked here.")
	h.push("orders", "w1", time.Hour, "p")
	says(t, h.get("/id?q=orders&id=w1"), "Track")
	says(t, h.do("op", "track", "q", "orders", "id", "w1"), "The id is tracked.", "w1", "Not due yet, runs in 1 h")
	h.do("op", "track", "q", "orders", "id", "gone")
	page := h.get("/tracked?q=orders")
	says(t, page, "gone", "w1", "Untrack", "0 s ago")
	says(t, h.do("op", "untrack", "q", "orders", "id", "gone"), "The id is no longer tracked.")
	saysNot(t, h.get("/tracked?q=orders"), "gone")
	for n := range 2 * maxTracked {
		h.do("op", "track", "q", "orders", "id", fmt.Sprintf("x%02d", n))
	}
	page = h.get("/tracked?q=orders")
	says(t, page, "x00", "next page")
	saysNot(t, page, "x30", "first page")
	says(t, h.get("/tracked?q=orders&after=20"), "x30", "first page", "next page")
	says(t, h.get("/tracked?q=orders&after=-7"), "x00")
}

func TestTrackedIDsAreText(t *testing.T) {
	h := newHouse(t, Options{})
	for _, id := range hostileIDs() {
		h.do("op", "track", "q", "orders", "id", id)
	}
	isText(t, "/tracked", h.get("/tracked?q=orders"))
}

func TestWhoMayNotTrackHasNoButton(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb == httpapi.VerbTrack {
			return fmt.Errorf("no")
		}
		return nil
	}}})
	h.push("orders", "w1", time.Hour, "p")
	saysNot(t, h.get("/id?q=orders&id=w1"), "Track ")
	says(t, h.get("/tracked?q=orders"), "No id is tracked here.")
}
