package dashboard

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

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
	_ = deadline.SetReadDeadline(time.Now().Add(bodyTime)) // where the server can't, its own timeouts count
	if c.r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return &problem{Status: http.StatusUnsupportedMediaType, Title: "This is no form", Detail: "Programs act by the API, below api/v1/."}
	}
	if err := c.r.ParseForm(); err != nil {
		return &problem{Status: http.StatusBadRequest, Title: "The form can't be read", Detail: "It is too large, or was cut off. Nothing was done."}
	}
	_ = deadline.SetReadDeadline(time.Time{})
	return nil
}

// op is what a form may do.
type op struct {
	// path is the action's in the API, below a queue if it is of one.
	path    string
	ofQueue bool
	// named is whether it acts on chosen ids, and all on all that match.
	named, all bool
	// back is the page to go to afterwards, unless the form came from another.
	back string
	// sure is whether it can't be undone, so that it asks first.
	sure bool
	// verb says what it does and did what was done, behind a count if it is named.
	verb, did string
	// things are what it acts on, if it is an action on all.
	things string
	// body makes the body for the API; nil is {} or the ids.
	body func(*call) (any, error)
}

type idsBody struct {
	IDs  []string `json:"ids"`
	Drop bool     `json:"drop,omitempty"`
}

// ops are all actions, by the name in forms.
var ops = map[string]op{
	"pause":   {path: "/pause", ofQueue: true, back: "queue", did: "The queue is paused: nothing more of it is claimed."},
	"resume":  {path: "/resume", ofQueue: true, back: "queue", did: "The queue goes on."},
	"forget":  {path: "/forget", ofQueue: true, sure: true, verb: "Forget the queue", did: "The queue is forgotten."},
	"recount": {path: "/recount", ofQueue: true, back: "queue", did: "The queue was counted anew."},
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

// discarded names the record of a form.
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

// edits reads the payload of a form, as it was and as it is to be.
func (c *call) edits() (any, error) {
	type replacement struct {
		Old octets `json:"old"`
		New octets `json:"new"`
	}
	old, err := base64.StdEncoding.DecodeString(c.r.PostForm.Get("old"))
	if err != nil {
		return nil, errForm
	}
	text := strings.ReplaceAll(c.r.PostForm.Get("new"), "\r\n", "\n") // browsers write line ends so, and only what has none of these is edited
	return struct {
		ID    string        `json:"id"`
		Edits []replacement `json:"edits"`
	}{c.r.PostForm.Get("id"), []replacement{{octetsOf(old), octetsOf([]byte(text))}}}, nil
}

var errForm = &problem{Status: http.StatusBadRequest, Title: "The form can't be read", Detail: "It says not what to do, or with what. Nothing was done."}

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

// flash is what was done just now.
type flash struct {
	Count, Text string
}

// flash returns what the address says was done. Whoever makes up an address can make it say no more than is in the table.
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

// confirmBody asks whether to do what can't be undone.
type confirmBody struct {
	Question, Verb string
	IDs            []string
	More           int
	Hidden         []hiddenField
	Back           string
}

// act does what a form asks for.
func (c *call) act() (*view, error) {
	form := c.r.PostForm
	name := form.Get("op")
	o, known := ops[name]
	switch {
	case !known, o.ofQueue && c.queue == "":
		return nil, errForm
	case form.Get("bulk") != "" && o.all:
		return c.actOnAll(name, &o)
	case o.named && len(c.ids()) == 0:
		return nil, &problem{Status: http.StatusBadRequest, Title: "Nothing was chosen", Detail: "Mark rows first. Nothing was done."}
	case o.sure && form.Get("confirm") != strconv.Itoa(len(c.ids())):
		return c.confirm(&o)
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
	return &view{to: c.back(&o, name, reply.Handled)}, nil
}

// confirm asks first.
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
	return &view{page: "confirm", title: b.Question, body: b}, nil
}

// backs are the pages that forms stand on, and the parameters of these that are kept.
var backs = map[string][]string{
	"queue": nil, "nodes": nil, "busy": nil, "jobs": {"list", "sort", "desc", "shard", "prefix", "from"}, "id": {"id"},
	"morgue": {"group", "error", "sort", "desc", "prefix", "from"},
}

// back is where to go after a form: to the page it stands on, else to that of what was done. It is made of names and values of our own routes.
func (c *call) back(o *op, did string, handled int) string {
	form := c.r.PostForm
	page := form.Get("back")
	keep, known := backs[page]
	if !known {
		page, keep = o.back, nil
	}
	params := []string{"did", did}
	if o.ofQueue || core.ValidateQueue(c.queue, 1) == nil {
		params = append(params, "q", c.queue)
	}
	if o.named && did != "" {
		params = append(params, "n", strconv.Itoa(handled))
	}
	for _, name := range keep {
		params = append(params, name, form.Get("back."+name))
	}
	if page == "" {
		return href("./", "did", did)
	}
	return href(page, params...)
}
