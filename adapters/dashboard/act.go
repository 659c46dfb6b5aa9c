package dashboard

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// bodyTime is how long a browser may take to send a form.
const bodyTime = 5 * time.Second

// readForm reads the form of an action.
func (c *call) readForm() error {
	most := c.o.API.MaxBodyBytes
	if most == 0 {
		most = 1 << 20
	}
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, most)
	deadline := http.NewResponseController(c.w)
	_ = deadline.SetReadDeadline(time.Now().Add(bodyTime)) // if the server can't, its own timeouts apply
	if c.r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return &problem{Status: http.StatusUnsupportedMediaType, Title: "This is no form", Detail: "Programs act by the API, below api/v1/."}
	}
	if err := c.r.ParseForm(); err != nil {
		return &problem{Status: http.StatusBadRequest, Title: "The form can't be read", Detail: "It is too large, or was cut off. Nothing was done."}
	}
	_ = deadline.SetReadDeadline(time.Time{})
	return nil
}

// op is an action of a form.
type op struct {
	// path is the action's path in the API, below a queue if it is an action on a queue.
	path    string
	ofQueue bool
	// named is whether it acts on chosen ids, and all whether on all that match.
	named, all bool
	// back is the page to go to afterwards, unless the form came from another one.
	back string
	// sure is whether it can't be undone, so that the page asks for confirmation.
	sure bool
	// verb names the action and did its result, which follows a count if ids are named.
	verb, did string
	// things are the kind of entries, for an action on all.
	things string
	// body makes the body for the API; nil means {} or the ids.
	body func(*call) (any, error)
}

type idsBody struct {
	IDs  []string `json:"ids"`
	Drop bool     `json:"drop,omitempty"`
}

// ops are all actions, by the name in forms.
var ops = map[string]op{
	"pause":   {path: "/pause", ofQueue: true, back: "queue", did: "The queue is paused: nothing more of it is claimed."},
	"resume":  {path: "/resume", ofQueue: true, back: "queue", did: "The queue is active."},
	"forget":  {path: "/forget", ofQueue: true, sure: true, verb: "Forget the queue", did: "The queue is forgotten."},
	"recount": {path: "/recount", ofQueue: true, back: "queue", did: "The queue was recounted."},
	"run-now": {path: "/jobs/run-now", ofQueue: true, named: true, all: true, back: "jobs", verb: "Run now", did: "made due", things: "queued jobs"},
	"bury":    {path: "/jobs/bury", ofQueue: true, named: true, all: true, back: "jobs", verb: "Bury", did: "moved to the morgue", things: "queued jobs that have failed"},
	"delete":  {path: "/jobs/delete", ofQueue: true, named: true, all: true, back: "jobs", sure: true, verb: "Delete", did: "deleted", things: "queued jobs that have failed"},
	"cancel":  {path: "/claimed/cancel", ofQueue: true, named: true, back: "busy", verb: "Cancel and put back", did: "asked to end, to be put back"},
	"drop": {path: "/claimed/cancel", ofQueue: true, named: true, back: "busy", sure: true, verb: "Cancel and drop", did: "asked to end, to be dropped",
		body: func(c *call) (any, error) { return idsBody{c.ids(), true}, nil }},
	"revive":  {path: "/morgue/revive", ofQueue: true, named: true, all: true, back: "morgue", verb: "Revive", did: "queued again", things: "dead letters"},
	"purge":   {path: "/morgue/purge", ofQueue: true, named: true, all: true, back: "morgue", sure: true, verb: "Purge", did: "removed for good", things: "dead letters"},
	"edit":    {path: "/morgue/edit", ofQueue: true, back: "id", did: "The payload is replaced.", body: (*call).edits},
	"discard": {path: "/quarantine/discard", ofQueue: true, back: "unreadable", sure: true, verb: "Discard", did: "The record is removed.", body: (*call).discarded},
	"drain":   {path: "/nodes/drain", back: "nodes", verb: "Drain", did: "The server gives its shards up.", body: nodeBody},
	"work":    {path: "/nodes/resume", back: "nodes", did: "The server works again.", body: nodeBody},
}

func nodeBody(c *call) (any, error) {
	return struct {
		Node string `json:"node"`
	}{c.r.PostForm.Get("node")}, nil
}

// discarded is the name of the form's record.
func (c *call) discarded() (any, error) {
	shard, err := strconv.Atoi(c.r.PostForm.Get("shard"))
	if err != nil || c.r.PostForm.Get("key") == "" {
		return nil, errForm
	}
	return struct {
		Shard int      `json:"shard"`
		Keys  []string `json:"keys"`
	}{shard, []string{c.r.PostForm.Get("key")}}, nil
}

// ids are the chosen ids of a form.
func (c *call) ids() []string { return c.r.PostForm["id"] }

// edits reads the payload of a form, before and after the edit.
func (c *call) edits() (any, error) {
	type replacement struct {
		Old octets `json:"old"`
		New octets `json:"new"`
	}
	old, err := base64.StdEncoding.DecodeString(c.r.PostForm.Get("old"))
	if err != nil {
		return nil, errForm
	}
	text := strings.ReplaceAll(c.r.PostForm.Get("new"), "\r\n", "\n") // browsers end lines this way, and only payloads without these are edited
	return struct {
		ID    string        `json:"id"`
		Edits []replacement `json:"edits"`
	}{c.r.PostForm.Get("id"), []replacement{{octetsOf(old), octetsOf([]byte(text))}}}, nil
}

var errForm = &problem{Status: http.StatusBadRequest, Title: "The form can't be read", Detail: "The form names no action or target. Nothing was changed."}

// result is the API's answer to an action.
type result struct {
	LookedAt  int       `json:"looked_at"`
	Handled   int       `json:"handled"`
	Total     int       `json:"total"`
	Later     int       `json:"later"`
	Continue  string    `json:"continue"`
	Jobs      []jobRow  `json:"jobs"`
	Dead      []deadRow `json:"dead"`
	Unreached []string  `json:"unreached"`
}

// flash is the result of the action just done.
type flash struct {
	Count, Text string
}

// flash returns the result that the address describes. A made-up address can show only texts of
// the table.
func (c *call) flash() *flash {
	q := c.r.URL.Query()
	done, known := ops[q.Get("did")]
	if !known {
		return nil
	}
	f := &flash{Text: done.did}
	if n, err := strconv.ParseInt(q.Get("n"), 10, 64); err == nil && n >= 0 && done.named {
		f.Count = strconv.FormatInt(n, 10)
	}
	return f
}

// confirmBody asks for confirmation of an action that can't be undone.
type confirmBody struct {
	Question, Verb string
	IDs            []string
	More           int
	Hidden         []hiddenField
	Back           string
}

// act carries out a form's action. A refusal leads back to the form's page.
func (c *call) act() (*view, error) {
	name := c.r.PostForm.Get("op")
	o, known := ops[name]
	if !known || o.ofQueue && c.queue == "" {
		return nil, errForm
	}
	v, err := c.do(name, &o)
	return v, refused(err, c.back(&o, "", 0))
}

// refused returns the error of an action with a link back to its form's page, if that is a page
// that can be shown.
func refused(err error, to string) error {
	if p := new(problem); errors.As(err, &p) {
		return leadingBack(p, to)
	}
	return err
}

// leadingBack returns a problem whose page has a link.
func leadingBack(p *problem, to string) *problem {
	copied := *p
	copied.Back = to
	return &copied
}

// do carries out the known action of a form.
func (c *call) do(name string, o *op) (*view, error) {
	form := c.r.PostForm
	switch {
	case form.Get("bulk") != "" && o.all:
		return c.actOnAll(name, o)
	case o.named && len(c.ids()) == 0:
		return nil, &problem{Status: http.StatusBadRequest, Title: "Nothing was chosen", Detail: "Mark rows of the list first. Nothing was done."}
	case o.sure && form.Get("confirm") != strconv.Itoa(len(c.ids())):
		return c.confirm(o)
	}
	var body any = struct{}{}
	if o.named {
		body = idsBody{IDs: c.ids()}
	}
	if o.body != nil {
		var err error
		if body, err = o.body(c); err != nil {
			return nil, err
		}
	}
	var reply result
	err := c.post(c.queue, o.path, body, &reply)
	c.looker.acted()
	if err != nil {
		return nil, err
	}
	if name == "edit" && form.Get("then") == "revive" {
		if err := c.post(c.queue, ops["revive"].path, idsBody{IDs: c.ids()}, &reply); err != nil {
			return nil, err
		}
		name = "revive"
	}
	return &view{to: c.back(o, name, reply.Handled)}, nil
}

// confirm asks for confirmation.
func (c *call) confirm(o *op) (*view, error) {
	const most = 20
	ids := c.ids()
	b := &confirmBody{Verb: o.verb, Question: o.verb + "?", Back: c.back(o, "", 0)}
	if n := len(ids); n > 0 {
		b.Question = o.verb + " " + strconv.Itoa(n) + map[bool]string{true: " id?", false: " ids?"}[n == 1]
		b.IDs, b.More = ids[:min(n, most)], max(0, n-most)
	}
	for field, values := range c.r.PostForm {
		if field == "confirm" {
			continue
		}
		for _, value := range values {
			b.Hidden = append(b.Hidden, hiddenField{field, value})
		}
	}
	slices.SortFunc(b.Hidden, func(x, y hiddenField) int { return strings.Compare(x.Name, y.Name) })
	b.Hidden = append(b.Hidden, hiddenField{"confirm", strconv.Itoa(len(ids))})
	b.stays(c, o)
	return &view{page: "confirm", title: b.Question, body: b}, nil
}

// stays makes the answer to a confirmation lead to the page of the original form, which is not the
// page that sends the answer.
func (b *confirmBody) stays(c *call, o *op) {
	to, err := url.Parse(b.Back)
	if err != nil || o.back == "" {
		return
	}
	values := to.Query()
	sent := c.r.PostForm
	for _, name := range backs[to.Path] {
		if value := values.Get(name); value != "" && !sent.Has("back."+name) {
			b.Hidden = append(b.Hidden, hiddenField{"back." + name, value})
		}
	}
	if to.Path == "busy" && !values.Has("q") {
		b.Hidden = append(b.Hidden, hiddenField{"back.all", "1"})
	}
	if _, known := backs[sent.Get("back")]; !known {
		b.Hidden = append(b.Hidden, hiddenField{"back", to.Path})
	}
}

// backs are the pages that have forms, and the parameters of these that are kept.
var backs = map[string][]string{
	"queue": {"by", "span"}, "nodes": nil, "busy": nil, "unreadable": nil, "jobs": {"list", "sort", "desc", "shard", "prefix", "from", "after"}, "id": {"id"},
	"morgue": {"group", "error", "sort", "desc", "asc", "prefix", "from", "after"},
}

// back is where to go after a form: to the form's page, or else to that of the action's result. It
// consists of names and values of the dashboard's own routes: those that the form names, and the
// others as they were on the page that sent it.
func (c *call) back(o *op, did string, handled int) string {
	form := c.r.PostForm
	page := form.Get("back")
	if _, known := backs[page]; !known {
		page = o.back
	}
	if page == "" && did == "" { // the queue still exists
		page = "queue"
	}
	stood := c.stoodOn(page)
	params := []string{"did", did}
	queue := c.queue
	if page == "busy" && (form.Get("back.all") != "" || stood != nil && stood.Get("q") == "") { // the page of all queues
		queue = ""
	}
	if core.ValidateQueue(queue, 1) == nil {
		params = append(params, "q", queue)
	}
	if o.named && did != "" {
		params = append(params, "n", strconv.Itoa(handled))
	}
	for _, name := range backs[page] {
		value := stood.Get(name)
		if form.Has("back." + name) {
			value = form.Get("back." + name)
		}
		params = append(params, name, value)
	}
	if page == "" {
		return href("./", "did", did)
	}
	return href(page, params...)
}

// stoodOn returns the parameters of the page that sent a form, or nil if that page does not have
// the given name. If the browser does not name the page, back leads to the page without
// parameters.
func (c *call) stoodOn(page string) url.Values {
	from, err := url.Parse(c.r.Referer())
	if err != nil || from.Host == "" || from.Host != c.r.Host || path.Base(from.Path) != page {
		return nil
	}
	values, err := url.ParseQuery(from.RawQuery)
	if err != nil {
		return nil
	}
	for name, list := range values {
		for _, value := range list {
			if !utf8.ValidString(value) || len(value) > cmp.Or(textLimits[name], maxText) {
				delete(values, name)
			}
		}
	}
	return values
}
