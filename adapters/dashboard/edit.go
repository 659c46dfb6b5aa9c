package dashboard

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/linediff"
	"github.com/skeinq/skein/internal/service"
)

// edit is the edit of a form.
type edit struct {
	id, place string
	// old and text are the payload and what replaces it.
	old  []byte
	text string
	// notJSON is true if the user wants a text in place of JSON that is none.
	notJSON bool
}

// editOf reads the edit of a form.
func (c *call) editOf() (*edit, error) {
	form := c.r.PostForm
	old, err := base64.StdEncoding.DecodeString(form.Get("old"))
	if err != nil {
		return nil, errForm
	}
	return &edit{
		id:    form.Get("id"),
		place: form.Get("place"),
		old:   old,
		// Browsers end lines with \r\n, and only payloads without these are edited.
		text:    strings.ReplaceAll(form.Get("new"), "\r\n", "\n"),
		notJSON: form.Get("not-json") != "",
	}, nil
}

// edit replaces the payload that a form names with the form's new one.
func (c *call) edit() (int, error) {
	e, err := c.editOf()
	if err != nil {
		return 0, err
	}

	if e.text == string(e.old) {
		return 0, newProblem(http.StatusConflict, "The new payload is the present one", "Nothing was changed.")
	}

	by := service.Edit
	if e.place == "queued" {
		by = service.EditJob
	}
	n, err := handled(asked(c, by, c.queue, &service.EditBody{
		ID:      e.id,
		NotJSON: e.notJSON,
		Edits:   []service.Replacement{{Old: service.OctetsOf(e.old), New: service.OctetsOf([]byte(e.text))}},
	}))
	if err == nil && n == 0 {
		return 0, newProblem(http.StatusConflict, "The payload is not there any more",
			"It was handled, replaced or moved meanwhile. Nothing was changed.")
	}
	return n, err
}

// edited returns the error of an action that was to follow an edit, which is stored.
func edited(err error) error {
	p := problemOf(err)
	if p == nil {
		return err
	}
	copied := *p
	copied.Detail = ops["edit"].did + " What was to follow was not done: " + p.Detail
	return &copied
}

// editBody is the page of an edit: the change, before it is stored, or what is wrong with it.
type editBody struct {
	Queue, ID, Place string
	Old, Text        string
	Lines            []linediff.Line
	// Wrong is why the text is not accepted; NotJSON is true if that can be overridden.
	Wrong   string
	NotJSON bool
	// Same is true if the text is the payload.
	Same bool
	// Failed is why the edit was not stored.
	Failed string
	Reason string
	// Then is the action that may follow at once, or "", and ThenText what its button says.
	Then, ThenText string
	Override       bool
	Back           string
}

// editing shows the change of an edit and asks whether to store it. failed is why it could not be
// stored, or nil.
func (c *call) editing(failed error) (*view, error) {
	e, err := c.editOf()
	if err != nil {
		return nil, err
	}

	b := &editBody{
		Queue:    c.queue,
		ID:       e.id,
		Place:    e.place,
		Old:      c.r.PostForm.Get("old"),
		Text:     e.text,
		Same:     e.text == string(e.old),
		Override: e.notJSON,
		Reason:   c.r.PostForm.Get("reason"),
		Back:     c.back(&op{back: "id"}, "", 0),
	}
	if err := service.CheckJSON(e.old, []byte(e.text)); err != nil {
		b.NotJSON = true
		if !e.notJSON {
			b.Wrong = err.Error()
		}
	}
	b.Lines = bounded(linediff.Near(linediff.Of(compared(string(e.old), e.text)), linediff.Context))
	b.then(c.may())

	v := &view{page: "edit", title: "Edit a payload of " + shown(e.id), body: b}
	if p := problemOf(failed); p != nil {
		v.status = p.Status
		if b.Wrong == "" {
			b.Failed = p.Title + ": " + p.Detail
		}
	}
	return v, nil
}

// then chooses the action that may follow the edit at once.
func (b *editBody) then(may *rights) {
	switch {
	case b.Place == "queued" && may.To("run-now"):
		b.Then, b.ThenText = "run-now", "Store and run now"
	case b.Place != "queued" && may.To("revive"):
		b.Then, b.ThenText = "revive", "Store and revive"
	}
}

// SpaceOnly reports whether the texts differ in white space only. The comparison leaves that out.
func (b *editBody) SpaceOnly() bool { return !linediff.Changed(b.Lines) }

// Line returns a line of the change with its sign, as text.
func (b *editBody) Line(l linediff.Line) string {
	if l.Kind == linediff.Skipped {
		return l.Kind.Sign() + "… " + figures.Exact(int64(l.Count)) + " lines"
	}
	return l.Kind.Sign() + readable(l.Text)
}

// Removed and Added report what a line is.
func (b *editBody) Removed(l linediff.Line) bool { return l.Kind == linediff.Removed }

// Added reports whether a line is new.
func (b *editBody) Added(l linediff.Line) bool { return l.Kind == linediff.Added }

// maxDiffLines is the maximum number of lines of a change that a page shows.
const maxDiffLines = 2000

// bounded returns the first lines of a change, with a count of those that are left out.
func bounded(lines []linediff.Line) []linediff.Line {
	if len(lines) <= maxDiffLines {
		return lines
	}
	rest := 0
	for _, l := range lines[maxDiffLines:] {
		rest += max(1, l.Count)
	}
	return append(lines[:maxDiffLines:maxDiffLines], linediff.Line{Kind: linediff.Skipped, Count: rest})
}

// maxIndented is the maximum number of bytes of JSON as it is compared. The indentation of deep JSON
// can be thousands of times as large as the JSON itself.
const maxIndented = 4 << 20

// compared returns two payloads as they are compared: JSON indented, unless one of them is none or
// grows too large.
func compared(before, after string) (string, string) {
	for _, text := range []string{before, after} {
		if !json.Valid([]byte(text)) || indentedSize(text) > maxIndented {
			return before, after
		}
	}
	return indented(before), indented(after)
}

// indentedSize returns about how many bytes JSON has when it is indented, and not less.
func indentedSize(text string) (size int) {
	depth, quoted := 0, false
	for at := 0; at < len(text); at++ {
		switch b := text[at]; {
		case quoted && b == '\\':
			at, size = at+1, size+1
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '[' || b == '{':
			depth++
			size += 1 + len(indent)*depth
		case b == ']' || b == '}':
			depth--
			size += 1 + len(indent)*depth
		case b == ',':
			size += 1 + len(indent)*depth
		case b == ':':
			size++
		}
		size++
	}
	return size
}

// indent is the indentation of each level of JSON.
const indent = "  "

// indented returns JSON as it is compared.
func indented(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", indent) != nil {
		return text
	}
	return b.String()
}
