package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/service"
)

// edited edits one payload of an id, in the place that the route is for.
func (h *house) edited(route, id, before, after string, notJSON bool) service.BulkReply {
	h.t.Helper()
	return post[service.BulkReply](h, "/queues/orders/"+route, service.EditBody{
		ID:      id,
		NotJSON: notJSON,
		Edits: []service.Replacement{{
			Old: service.OctetsOf([]byte(before)),
			New: service.OctetsOf([]byte(after)),
		}},
	})
}

func TestPayloadsOfQueuedJobsAreEdited(t *testing.T) {
	h := newHouse(t, Options{})
	h.failed("boom", "a")
	if r := h.edited("jobs/edit", "a", "p", "q", false); r.Handled != 1 {
		t.Errorf("%+v", r)
	}
	jobs := get[list[jobRow]](h, "/queues/orders/jobs?payloads=9").Items
	if len(jobs) != 1 || jobs[0].Retries != 1 || strings.Join(texts(t, jobs[0].Payloads), " ") != "q" {
		t.Errorf("%+v", jobs)
	}
	if r := h.edited("jobs/edit", "none", "p", "q", false); r.Handled != 0 {
		t.Errorf("of no job: %+v", r)
	}
}

// JSON is not replaced by what is none, unless the client wants that. Other payloads may be
// replaced by anything.
func TestAnEditBreaksNoJSON(t *testing.T) {
	for _, route := range []string{"jobs/edit", "morgue/edit"} {
		h := newHouse(t, Options{})
		h.push("a", 0, `{"n": 1}`, "text")
		if route == "morgue/edit" {
			post[service.BulkReply](h, "/queues/orders/jobs/bury", service.BulkBody{IDs: []string{"a"}})
		}

		for broken, where := range map[string]string{
			`{"n": }`: "line 1", "{\n\"n\": 1,\n}": "line 3", "": "not JSON", `{"n": 1} x`: "line 1", "\u2028": "line 1",
		} {
			body := service.EditBody{ID: "a", Edits: []service.Replacement{{
				Old: service.OctetsOf([]byte(`{"n": 1}`)), New: service.OctetsOf([]byte(broken)),
			}}}
			text := jsonOf(t, body)
			p := refused(t, broken, answerOf(h.api, request(http.MethodPost, base+"/queues/orders/"+route, text)), 400,
				"not-json")
			if !strings.Contains(p.Detail, where) {
				t.Errorf("%q: %s", broken, p.Detail)
			}
		}

		for _, edit := range [][2]string{{"text", "other"}, {`{"n": 1}`, `{"n": 2}`}} {
			if r := h.edited(route, "a", edit[0], edit[1], false); r.Handled != 1 {
				t.Errorf("%s %q: %+v", route, edit, r)
			}
		}
		if r := h.edited(route, "a", `{"n": 2}`, `{"n":`, true); r.Handled != 1 {
			t.Errorf("%s by will: %+v", route, r)
		}
	}
}

// An edit names at least one payload, and not more than one request may.
func TestAnEditNamesSomePayloads(t *testing.T) {
	h := newHouse(t, Options{})
	for _, n := range []int{0, service.MaxNamed + 1} {
		one := service.Replacement{Old: service.OctetsOf([]byte("p")), New: service.OctetsOf([]byte("q"))}
		text := jsonOf(t, service.EditBody{ID: "a", Edits: slices.Repeat([]service.Replacement{one}, n)})
		for _, route := range []string{"jobs/edit", "morgue/edit"} {
			w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/"+route, text))
			refused(t, route, w, 400, "bad-request")
		}
	}
}

func jsonOf(t *testing.T, body any) string {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
