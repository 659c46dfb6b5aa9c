package dashboard

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
)

// editForm is the form of an edit of an id a, in a place.
func editForm(place, old, text string, more ...string) []string {
	return append([]string{
		"op", "edit", "q", "orders", "id", "a", "place", place, "old", base64.StdEncoding.EncodeToString([]byte(old)),
		"new", text, "back", "id", "back.id", "a",
	}, more...)
}

// A queued payload is edited where it is: the job keeps its time and its failures.
func TestEditAQueuedPayload(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, `{"n": 1}`)
	h.end("orders", core.Failed, "boom")
	page := h.get("/id?q=orders&id=a")
	if !strings.Contains(page, `name="place" value="queued"`) || strings.Count(page, `value="edit"`) != 1 {
		t.Fatalf("it can't be edited: %s", words(page))
	}
	says(t, h.form(editForm("queued", `{"n": 1}`, `{"n": 2}`)...).Body.String(),
		"Edit a queued payload of a", "Store and run now Store Discard")

	says(t, h.do(editForm("queued", `{"n": 1}`, `{"n": 2}`, "confirm", "1")...), "The payload is replaced.", `{"n": 2}`)
	if s := h.stats(); s.Retrying != 1 {
		t.Errorf("%+v", s.Counts)
	}
	h.advance(time.Second)
	says(t, h.do(editForm("queued", `{"n": 2}`, `{"n": 3}`, "confirm", "1", "then", "run-now")...), "made due")
	page = h.do(editForm("queued", `{"n": 3}`, `{"n": 4}`, "confirm", "1", "then", "run-now")...) // it is due already
	says(t, page, "The payload is replaced.")

	for index := range houseShards {
		h.turn("orders", index, 1)
	}
	if page := h.get("/id?q=orders&id=a"); strings.Contains(page, `value="edit"`) {
		t.Errorf("a claimed payload can be edited: %s", words(page))
	}
}

// JSON is not replaced by what is none before the user says so, and the form keeps its words.
func TestAnEditOfBrokenJSONIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, `{"n": 1}`)
	const broken = `{"n": 1, "why": "<b>"`
	for _, more := range [][]string{nil, {"confirm", "1"}} {
		w := h.form(editForm("queued", `{"n": 1}`, broken, more...)...)
		page := w.Body.String()
		says(t, page, "the new payload is not JSON, and the old one is", "store it although it isn't JSON")
		if more == nil && !strings.Contains(page, "Not accepted: the new payload is not JSON, and the old one is: line 1") {
			t.Errorf("%s", words(page))
		}
		if !strings.Contains(page, "{&#34;n&#34;: 1, &#34;why&#34;: &#34;&lt;b&gt;&#34;</textarea>") {
			t.Errorf("the text is lost: %s", page)
		}
		saysNot(t, page, `name="confirm"`, "<b>", "Not stored")
	}

	page := h.form(editForm("queued", `{"n": 1}`, broken, "not-json", "1")...).Body.String()
	if !strings.Contains(page, `name="confirm"`) || !strings.Contains(page, `value="1" checked`) {
		t.Errorf("it can't be stored: %s", words(page))
	}
	says(t, h.do(editForm("queued", `{"n": 1}`, broken, "not-json", "1", "confirm", "1")...), "The payload is replaced.")
}

// The page of an edit names what does not change, what can't be stored, and the reason given.
func TestThePageOfAnEdit(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, `{"n": 1}`)
	says(t, h.form(editForm("queued", `{"n": 1}`, `{"n": 1}`)...).Body.String(), "The new payload is the present one.")
	says(t, h.form(editForm("queued", `{"n": 1}`, `{"n":1}`)...).Body.String(), "Only white space differs.")
	says(t, h.form(editForm("queued", "one\r\ntwo", "one\r\nthree")...).Body.String(), "+ three")
	for _, text := range hostile {
		isText(t, "an edit", h.form(editForm("queued", `{"n": 1}`, text)...).Body.String())
		isText(t, "an edit", h.form(editForm("dead", text, "new", "reason", text)...).Body.String())
	}

	w := h.form(editForm("queued", "gone", "new", "confirm", "1", "reason", "by <phone>")...)
	says(t, w.Body.String(), "Not stored. The payload is not there any more")
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `value="by &lt;phone&gt;"`) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	lines := strings.Repeat("same\n", 20)
	says(t, h.form(editForm("queued", "a\n"+lines, "b\n"+lines)...).Body.String(), "… 18 lines")
}

// Deep JSON is compared as it is: its indentation would be thousands of times as large.
func TestDeepJSONIsComparedAsItIs(t *testing.T) {
	deep := strings.Repeat("[", 9000) + strings.Repeat("1,", 20_000) + "1" + strings.Repeat("]", 9000)
	before, after := compared(deep, deep+" ")
	if len(before) != len(deep) || len(after) != len(deep)+1 {
		t.Errorf("%d and %d bytes are compared, want those of the payload, %d", len(before), len(after), len(deep))
	}

	for _, text := range []string{
		`{}`, `[]`, `{"a":[1,2,{"b":"x,\\\"[{"}],"c":{},"d":null}`, `"[[["`, `7`, "[ 1 ,\n\t2 ]",
	} {
		got, _ := compared(text, text)
		if size := indentedSize(text); got != indented(text) || len(got) > size {
			t.Errorf("%q has %d bytes when it is indented, and %d at most were expected: %q", text, len(got), size, got)
		}
	}
}

// A page shows the first lines of a large change, and how many more there are.
func TestALargeChangeIsCut(t *testing.T) {
	h := newHouse(t, Options{})
	page := h.form(editForm("queued", strings.Repeat("a\n", 10_000), "b")...).Body.String()
	says(t, page, "- a", "… 8,002 lines")
	if n := strings.Count(page, "<del>"); n != maxDiffLines {
		t.Errorf("%d lines are shown, want %d", n, maxDiffLines)
	}
}

// The page of an edit offers to run or to revive only what the user may, and stores nothing that he
// may not edit.
func TestAnEditFollowsRights(t *testing.T) {
	refused := map[httpapi.Verb]bool{}
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if refused[a.Verb] {
			return errors.New("not that")
		}
		return nil
	}}})
	h.push("orders", "a", 0, "old")
	queued, dead := editForm("queued", "old", "other"), editForm("dead", "old", "other")
	says(t, h.form(queued...).Body.String(), "Store and run now")
	says(t, h.form(dead...).Body.String(), "Store and revive")

	refused[httpapi.VerbRunNow], refused[httpapi.VerbRevive] = true, true
	saysNot(t, h.form(queued...).Body.String(), "Store and", `name="then"`)
	saysNot(t, h.form(dead...).Body.String(), "Store and", `name="then"`)

	refused[httpapi.VerbEdit] = true
	if w := h.form(append(queued, "confirm", "1")...); w.Code != http.StatusForbidden {
		t.Errorf("status %d: %s", w.Code, words(w.Body.String()))
	}
	if page := h.get("/id?q=orders&id=a"); strings.Contains(page, "other") {
		t.Errorf("it is stored: %s", words(page))
	}
}

// An edit that changes nothing is not stored, and the page says why: the payload is gone, or it has
// these bytes already.
func TestAnEditThatChangesNothing(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, "old")
	for want, form := range map[string][]string{
		"The new payload is the present one: Nothing was changed.": editForm("queued", "old", "old", "confirm", "1"),
		"The payload is not there any more":                        editForm("queued", "gone", "new", "confirm", "1"),
	} {
		w := h.form(form...)
		if says(t, w.Body.String(), want); w.Code != http.StatusConflict {
			t.Errorf("%q: status %d", form, w.Code)
		}
	}
}

// If the action behind an edit fails, the page says that the edit is stored.
func TestWhatFollowsAnEditFails(t *testing.T) {
	h := newHouse(t, Options{})
	h.ended(core.Buried, "boom", "a")
	h.store.fails = errors.New("gone away")
	w := h.form(editForm("dead", "p", "new", "confirm", "1", "then", "revive")...)
	says(t, w.Body.String(), "The payload is replaced. What was to follow was not done:", "gone away")
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
}
