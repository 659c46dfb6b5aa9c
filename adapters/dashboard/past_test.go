package dashboard

import (
	"net/http"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
)

// done pushes a job of two payloads to orders, ends it as done with a result, and records that.
func (h *house) done(id, result string) {
	h.t.Helper()
	h.push("orders", id, 0, "p", "q")
	index := core.ShardOf(id, houseShards)
	claims := h.turn("orders", index, 1)
	if len(claims) != 1 {
		h.t.Fatalf("%d claims of %q", len(claims), id)
	}

	settled := core.RetryPolicy{}.Settlement(&claims[0], &core.Outcome{Kind: core.Done}, 0)
	settled.Record(&claims[0], core.Run{Took: 12 * time.Millisecond, Node: "blue", Result: []byte(result)})
	h.turns[core.Shard{Queue: "orders", Index: index}].Keep = core.KeepPast{Age: time.Hour}
	h.turn("orders", index, 0, settled)
}

func TestThePageOfAnIDHasItsLastRun(t *testing.T) {
	h := newHouse(t, Options{})
	h.done("a", `{"sum":17}`)
	h.advance(3 * time.Minute)

	page := h.get("/id?q=orders&id=a")
	says(t, page, "Done 3 min ago by server blue, in 12 ms",
		"Last done done 3 min ago server blue ran for 12 ms attempt 1 payloads 2 highest score 1 result 10 B",
		"Result of the last run that was done", `{ "sum": 17 }`)
	saysNot(t, page, "last done ")

	h.done("b", "")
	page = h.get("/id?q=orders&id=b")
	says(t, page, "Last done")
	saysNot(t, page, "result 0 B", "of the last run that was done")
	saysNot(t, h.get("/id?q=orders&id=c"), "Last done")
}

// An older version in the morgue is not revived, and the page says why.
func TestARevivalOfSomethingStaleIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.ended(core.Buried, "no use", "a")
	h.push("orders", "a", 0, "q")
	index := core.ShardOf("a", houseShards)
	claims := h.turn("orders", index, 1)
	settled := core.RetryPolicy{}.Settlement(&claims[0], &core.Outcome{Kind: core.Done}, 0)
	settled.Mark = core.MarkAt(9)
	h.turns[core.Shard{Queue: "orders", Index: index}].Keep = core.KeepPast{Age: time.Hour}
	h.turn("orders", index, 0, settled)

	says(t, h.form("op", "revive", "q", "orders", "id", "a").Body.String(),
		"not newer than what was done of its id", "skein morgue revive --force")
	if n := h.stats().Dead; n != 1 {
		t.Errorf("%d dead letters are left, want 1", n)
	}
}

// The search finds an id of which only the record is left.
func TestASearchFindsAnIDThatWasDone(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", houseShards)
	h.done("a", "")
	h.push("mails", "a", 0, "p")
	says(t, h.get("/search?for=a"), "mails mails/0 queued", "orders orders/0 done")
}

func TestTheResultOfAnIDIsShownLikeAPayload(t *testing.T) {
	const secret = "result-secret"
	for name, o := range map[string]httpapi.Options{
		"redacted": {RedactPayload: func(string, string, []byte) []byte { return []byte("hidden") }},
		"refused": {Authorize: func(_ *http.Request, a httpapi.Action) error {
			if a.Verb == httpapi.VerbViewPayload {
				return http.ErrNoCookie
			}
			return nil
		}},
	} {
		h := newHouse(t, Options{API: o})
		h.done("a", secret)
		page := h.get("/id?q=orders&id=a")
		says(t, page, "Last done")
		saysNot(t, page, secret)
		want := map[string]string{"redacted": "hidden", "refused": "have permission to see payloads"}[name]
		says(t, page, want)
	}
}
