package browser_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/internal/tier"
)

// A page that comes in pieces, as over a slow line or on a busy machine, is shown when all of it
// is there: later pieces would move the visible ones.
func TestPagesInPiecesDoNotMove(t *testing.T) {
	tier.Long(t, "sends five pages slowly, in pieces")
	h := newHouse(t, dashboard.Options{})
	h.furnish()
	h.settle()
	h.inPieces.Store(true)
	b := h.tab(desk)
	for _, page := range []string{
		"", "queue?q=orders", "jobs?q=orders", "jobs?q=orders&list=scheduled", "morgue?q=orders",
	} {
		b.open(page)
		b.isStill(page)
	}
}

// pieces writes a page so that a browser has time to show the first pieces.
type pieces struct{ http.ResponseWriter }

func (w pieces) Write(page []byte) (n int, err error) {
	for len(page) > 0 && err == nil {
		part := page[:min(len(page), 1500)]
		page = page[len(part):]
		var k int
		k, err = w.ResponseWriter.Write(part)
		n += k
		w.ResponseWriter.(http.Flusher).Flush()
		time.Sleep(40 * time.Millisecond)
	}
	return n, err
}
