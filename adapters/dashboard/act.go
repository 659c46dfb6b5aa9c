package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
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

	// A server that can't set a deadline has its own timeouts.
	deadline := http.NewResponseController(c.w)
	_ = deadline.SetReadDeadline(time.Now().Add(bodyTime))

	if c.r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return newProblem(http.StatusUnsupportedMediaType, "The request is not a form",
			"Programs use the API below api/v1/. Nothing was changed.")
	}
	if err := c.r.ParseForm(); err != nil {
		return newProblem(http.StatusBadRequest, "The form can't be read",
			"It is too large or incomplete. Nothing was changed.")
	}

	_ = deadline.SetReadDeadline(time.Time{})
	return nil
}

// op is an action of a form.
type op struct {
	ofQueue bool
	// named is true if the action is on chosen ids.
	named bool
	// back is the page that follows, unless the form came from another page.
	back string
	// removes is the page of the entry that the action removes. back follows instead.
	removes string
	// sure is set if the action can't be undone, so the page asks for confirmation.
	sure bool
	// verb names the action. asks begins its question instead, if the verb can't. did names its
	// result, after a count if ids are named.
	verb, asks, did string
	// things names the kind of entries, for an action on all.
	things string
	// question is the question of the confirmation, with what it is about. If it is nil, verb and
	// the ids make the question. effect is what the action does, if it can be undone.
	question func(*call) (question, about string, err error)
	effect   string
	// do takes the action and returns the number of changed entries.
	do func(*call) (int, error)
	// all acts on all entries that match. It is nil if the action has no such form.
	all func(*call, *service.BulkBody) (*service.BulkReply, error)
}

// ops are all actions, by the name in forms.
var ops = map[string]op{
	"pause": {
		do:      plain(service.Pause),
		ofQueue: true,
		back:    "queue",
		did:     "The queue is paused. Its waiting jobs are not claimed.",
	},
	"resume": {do: plain(service.Resume), ofQueue: true, back: "queue", did: "The queue is active."},
	"configure": {
		do:      (*call).configure,
		ofQueue: true,
		back:    "queue",
		did:     "The settings are stored. Servers follow within seconds.",
	},
	"forget": {
		do:      plain(service.Forget),
		ofQueue: true,
		sure:    true,
		verb:    "Forget the queue",
		did:     "The queue is forgotten.",
	},
	"recount": {do: plain(service.Recount), ofQueue: true, back: "queue", did: "The queue was recounted."},
	"run-now": onJobs(service.RunNow, op{back: "jobs", verb: "Run now", did: "made due", things: "queued jobs"}),
	"release": onJobs(service.Release, op{back: "jobs", verb: "Release", did: "released", things: "held jobs"}),
	"bury": onJobs(service.Bury, op{
		back: "jobs", verb: "Bury", did: "moved to the morgue", things: "queued jobs that have failed",
	}),
	"delete": onJobs(service.Delete, op{
		back:   "jobs",
		sure:   true,
		verb:   "Delete",
		did:    "deleted",
		things: "queued jobs that have failed",
	}),
	"cancel": {
		do:      cancel(false),
		ofQueue: true,
		named:   true,
		back:    "busy",
		verb:    "Cancel and put back",
		did:     "cancelled, to be put back",
	},
	"drop": {
		do:      cancel(true),
		ofQueue: true,
		named:   true,
		back:    "busy",
		sure:    true,
		verb:    "Cancel and drop",
		did:     "cancelled, to be dropped",
	},
	"revive": onDead(service.Revive, op{back: "morgue", verb: "Revive", did: "queued again", things: "dead letters"}),
	"purge": onDead(service.Purge, op{
		back:   "morgue",
		sure:   true,
		verb:   "Purge",
		did:    "removed permanently",
		things: "dead letters",
	}),
	"edit": {do: (*call).edit, ofQueue: true, back: "id", did: "The payload is replaced."},
	"discard": {
		do:      (*call).discard,
		ofQueue: true,
		back:    "unreadable",
		sure:    true,
		verb:    "Discard",
		did:     "The record is removed.",
	},
	"track": {
		do:      onTracked(service.Track),
		ofQueue: true,
		back:    "tracked",
		verb:    "Track",
		did:     "The id is tracked.",
	},
	"untrack": {
		do:      onTracked(service.Untrack),
		ofQueue: true,
		back:    "tracked",
		verb:    "Untrack",
		did:     "The id is no longer tracked.",
	},
	"run-schedule": onSchedules(selectedBy(service.RunSchedules), op{
		back: "schedules",
		sure: true,
		verb: "Push now",
		asks: "Push now for",
		did:  "Pushed. The next tick stays as it is.",
	}),
	"pause-schedule": onSchedules(pauseSchedules, op{
		back:   "schedules",
		sure:   true,
		verb:   "Pause",
		did:    "Paused. No tick fires until it is resumed.",
		effect: "No tick fires until it is resumed. The reason is shown with the schedule.",
	}),
	"resume-schedule": onSchedules(selectedBy(service.ResumeSchedules), op{
		back:   "schedules",
		sure:   true,
		verb:   "Resume",
		did:    "Resumed.",
		effect: "Ticks that were due meanwhile fire at once, as many as its catch-up allows.",
	}),
	"backfill-schedule": {
		do:      (*call).backfill,
		ofQueue: true,
		named:   true,
		back:    "schedules",
		verb:    "Push",
		did:     "pushed, one for each past tick of the range.",
	},
	"remove-schedule": onSchedules(selectedBy(service.RemoveSchedules), op{
		back:    "schedules",
		removes: "schedule",
		sure:    true,
		verb:    "Remove",
		did:     "The schedule is removed. What it has pushed stays.",
	}),
	"drain": {
		do: onNode(service.Drain), back: "nodes", verb: "Drain", did: "The server drains. It gives up its shards.",
	},
	"work": {do: onNode(service.ResumeNode), back: "nodes", did: "The server takes shards again."},
}

// plain returns the function of an action that needs only the queue.
func plain[R any](o service.Op[service.NoBody, R]) func(*call) (int, error) {
	return func(c *call) (int, error) {
		_, err := asked(c, o, c.queue, &service.NoBody{})
		return 0, err
	}
}

// onNode returns the function of an action on the server that a form names.
func onNode[R any](o service.Op[service.NodeBody, R]) func(*call) (int, error) {
	return func(c *call) (int, error) {
		_, err := asked(c, o, "", &service.NodeBody{Node: c.r.PostForm.Get("node")})
		return 0, err
	}
}

// onJobs completes an action on chosen ids or on all that match.
func onJobs(o service.Op[service.BulkBody, service.BulkReply], of op) op {
	return onBulk(of, func(c *call, b *service.BulkBody) (*service.BulkReply, error) { return asked(c, o, c.queue, b) })
}

func onDead(o service.Op[service.MorgueBody, service.BulkReply], of op) op {
	return onBulk(of, func(c *call, b *service.BulkBody) (*service.BulkReply, error) {
		return asked(c, o, c.queue, &service.MorgueBody{BulkBody: *b})
	})
}

func onBulk(of op, all func(*call, *service.BulkBody) (*service.BulkReply, error)) op {
	of.ofQueue, of.named, of.all = true, true, all
	of.do = func(c *call) (int, error) { return handled(all(c, &service.BulkBody{IDs: c.ids()})) }
	return of
}

// cancel ends the chosen jobs.
func cancel(drop bool) func(*call) (int, error) {
	return func(c *call) (int, error) {
		return handled(asked(c, service.Cancel, c.queue, &service.CancelBody{IDs: c.ids(), Drop: drop}))
	}
}

// handled returns the number of entries that a bulk action has changed. If it has left all of them
// alone because they are stale, the page says so.
func handled(r *service.BulkReply, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	if r.Stale > 0 && r.Handled == 0 {
		return 0, newProblem(http.StatusConflict, "A payload is not newer than what was done of its id",
			"So its dead letter stays in the morgue. skein morgue revive --force revives it.")
	}
	return r.Handled, nil
}

// discard removes the record of a form.
func (c *call) discard() (int, error) {
	shard, err := strconv.Atoi(c.r.PostForm.Get("shard"))
	if err != nil || c.r.PostForm.Get("key") == "" {
		return 0, errForm
	}

	_, err = asked(c, service.Discard, c.queue, &service.DiscardBody{
		Shard: shard, Keys: []string{c.r.PostForm.Get("key")},
	})
	return 0, err
}

// ids are the chosen ids of a form.
func (c *call) ids() []string { return c.r.PostForm["id"] }

var errForm = newProblem(http.StatusBadRequest, "The form can't be read",
	"The form names no action or target. Nothing was changed.")

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
	// About describes what the action is about, beside IDs.
	About string
	// Effect is what the action does. It is empty if that can't be undone.
	Effect string
	IDs    []string
	More   int
	Hidden []hiddenField
	Back   string
}

// act carries out a form's action. A refusal leads back to the form's page.
func (c *call) act() (*view, error) {
	name := c.r.PostForm.Get("op")
	o, known := ops[name]
	if !known || o.ofQueue && c.queue == "" {
		return nil, errForm
	}

	v, err := c.do(name, &o)
	return v, leadingBack(err, c.back(&o, "", 0))
}

// acted makes the next page read the store again, unless the action was refused: a caller without
// the right must not make pages read it more often.
func (c *call) acted(err error) {
	if p := problemOf(err); p != nil {
		switch p.Status {
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
			return
		}
	}

	c.looker.acted()
}

// do carries out the known action of a form.
func (c *call) do(name string, o *op) (*view, error) {
	form := c.r.PostForm
	switch {
	case form.Get("bulk") != "" && o.all != nil:
		return c.actOnAll(name, o)
	case o.named && len(c.ids()) == 0:
		return nil, newProblem(http.StatusBadRequest, "No rows are marked",
			"Mark rows of the list first. Nothing was changed.")
	case name == "edit" && form.Get("confirm") == "":
		return c.editing(nil)
	case o.sure && form.Get("confirm") != strconv.Itoa(len(c.ids())):
		return c.confirm(o)
	}

	count, err := o.do(c)
	c.acted(err)
	if err != nil && name == "edit" {
		return c.editing(err)
	}
	if err != nil && name == "configure" {
		return c.configuring(err)
	}
	if err != nil {
		return nil, err
	}

	if then := form.Get("then"); name == "edit" && (then == "revive" || then == "run-now") {
		if count, err = ops[then].do(c); err != nil {
			return nil, edited(err)
		}
		if count > 0 || then == "revive" { // a job may be due already
			name = then
		}
	}

	return &view{to: c.back(o, name, count)}, nil
}

// confirm asks for confirmation.
func (c *call) confirm(o *op) (*view, error) {
	const most = 20
	ids := c.ids()
	b := &confirmBody{Verb: o.verb, Effect: o.effect, Question: o.verb + "?", Back: c.back(o, "", 0)}

	if n := len(ids); n > 0 {
		b.Question = o.verb + " " + strconv.Itoa(n) + map[bool]string{true: " id?", false: " ids?"}[n == 1]
		b.IDs, b.More = ids[:min(n, most)], max(0, n-most)
	}
	if o.question != nil {
		var err error
		if b.Question, b.About, err = o.question(c); err != nil {
			return nil, err
		}
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

	if ofAll[to.Path] && !values.Has("q") {
		b.Hidden = append(b.Hidden, hiddenField{"back.all", "1"})
	}
	if _, known := backs[sent.Get("back")]; !known {
		b.Hidden = append(b.Hidden, hiddenField{"back", to.Path})
	}
}

// backs are the pages that have forms, and the parameters of these that are kept.
var backs = map[string][]string{
	"schedules": {"contains", "state", "after"}, "named": {"name", "state", "after"}, "schedule": {"name", "id"},
	"queue": {"by", "span"}, "nodes": nil, "server": {"node"}, "busy": nil, "unreadable": nil, "tracked": {"after"},
	"jobs": {"list", "sort", "desc", "shard", "prefix", "tag", "from", "after"}, "id": {"id"},
	"morgue": {"group", "error", "tag", "sort", "desc", "asc", "prefix", "from", "after"},
	"errors": {"state", "since", "tag", "text", "open"},
}

// ofAll are the pages with forms that show all queues if the address names none.
var ofAll = map[string]bool{"busy": true, "schedules": true, "errors": true}

// back returns the address of the page after a form: the form's page, or else that of the action's
// result. The address has only names of the dashboard's own routes and their parameters. Values
// come from the form or, if the form lacks them, from the page that sent it.
func (c *call) back(o *op, did string, handled int) string {
	form := c.r.PostForm
	page := form.Get("back")
	if _, known := backs[page]; !known || did != "" && page == o.removes {
		page = o.back
	}
	if page == "" && did == "" { // the queue still exists
		page = "queue"
	}

	stood := c.stoodOn(page)
	params := []string{"did", did}
	queue := c.queue
	if ofAll[page] && (form.Get("back.all") != "" || stood != nil && stood.Get("q") == "") {
		queue = "" // the page of all queues
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
