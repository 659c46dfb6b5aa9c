package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// route is a page, or an action of a form.
type route struct {
	method, path string
	// acts is true if the route is for actions, which a read-only dashboard lacks.
	acts bool
	// needs is true if the route needs a queue, in the parameter q.
	needs bool
	// whole is true if the page shows all queues and servers, even if the parameter q names a
	// queue.
	whole bool
	// some is true if the page without a queue can be about those that its user may see.
	some bool
	run  func(*call) (*view, error)
}

// table returns all routes, below the prefix.
func table() []route {
	return []route{
		{method: http.MethodGet, path: "{$}", some: true, run: (*call).overview},
		{method: http.MethodGet, path: "queue", needs: true, run: (*call).queuePage},
		{method: http.MethodGet, path: "shards", needs: true, run: (*call).shardsPage},
		{method: http.MethodGet, path: "settings", acts: true, needs: true, run: (*call).settingsPage},
		{method: http.MethodGet, path: "jobs", needs: true, run: (*call).jobsPage},
		{method: http.MethodGet, path: "id", needs: true, run: (*call).idPage},
		{method: http.MethodGet, path: "search", some: true, run: (*call).search},
		{method: http.MethodGet, path: "errors", some: true, run: (*call).errorsPage},
		{method: http.MethodGet, path: "busy", some: true, run: (*call).busyPage},
		{method: http.MethodGet, path: "morgue", needs: true, run: (*call).morguePage},
		{method: http.MethodGet, path: "unreadable", needs: true, run: (*call).unreadable},
		{method: http.MethodGet, path: "tracked", needs: true, run: (*call).trackedPage},
		{method: http.MethodGet, path: "schedules", some: true, run: (*call).schedulesPage},
		{method: http.MethodGet, path: "named", needs: true, run: (*call).namedPage},
		{method: http.MethodGet, path: "schedule", needs: true, run: (*call).schedulePage},
		{method: http.MethodGet, path: "backfill", acts: true, needs: true, run: (*call).backfillPage},
		{method: http.MethodGet, path: "nodes", whole: true, run: (*call).nodesPage},
		{method: http.MethodGet, path: "server", some: true, run: (*call).serverPage},
		{method: http.MethodGet, path: "store", whole: true, run: (*call).storePage},
		{method: http.MethodGet, path: "audit", run: (*call).auditPage},
		{method: http.MethodPost, path: "act", acts: true, run: (*call).act},
		{method: http.MethodGet, path: "sheet", acts: true, needs: true, run: (*call).sheet},
		{method: http.MethodGet, path: "steps", acts: true, needs: true, run: (*call).steps},
	}
}

// call is a request of a page under way.
type call struct {
	*Dashboard
	w http.ResponseWriter
	r *http.Request
	// who is the service's caller of the request.
	who   *service.Caller
	queue string
	// allowed is true if the rights allow the page.
	allowed bool
	sight   sight
	// cost is the time that the service spent on the request.
	cost time.Duration
}

// view is a page that is to be shown.
type view struct {
	// page is the name of its template and of the marked tab; title is the browser's.
	page, title string
	status      int
	// live is true if scripts request the page again.
	live bool
	body any
	// to is the address to redirect to, after an action. The page is then not shown.
	to string
}

// frame is the data of each page's layout.
type frame struct {
	Page, Title, Bar, Queue, Actor string
	Queues                         []string
	// Stores are links to all, where there are several.
	Stores         []tab
	Live, ReadOnly bool
	// All is true if the user may see all queues and servers.
	All bool
	Now time.Time
	// AsOf is the time of the page's figures. Silence is the store's, if it does not answer.
	AsOf    time.Time
	Silence *silence
	// Rest is the number of milliseconds after which scripts request the page again. It grows with
	// the duration of the calls that only this page makes.
	Rest int64
	// Reload is the number of seconds after which browsers without scripts reload the page; 0 means
	// never. Again is the address that turns this on or off.
	Reload int
	Again  string
	Flash  *flash
	Counts counted
	Body   any
}

// maxText is the largest number of bytes of a parameter, except those of textLimits: the
// checkpoint of a bulk action, and payloads.
const maxText = 4 << 10

var textLimits = map[string]int{
	"continue":   32 << 10,
	"after":      8 << 10,
	"back.after": 8 << 10,
	"key":        8 << 10,
	"old":        1 << 20,
	"new":        1 << 20,
}

// reloadTime is the number of seconds after which a browser without scripts reloads a page, if that
// is turned on.
const reloadTime = 10

// pageTime is the maximum duration of all calls of a page. Scripts wait a little longer.
const pageTime = 9 * time.Second

// serve answers a request of a route.
func (d *Dashboard) serve(w http.ResponseWriter, r *http.Request, route *route) {
	if route.method != http.MethodPost { // an action has the API's time
		ctx, end := context.WithTimeout(r.Context(), pageTime)
		defer end()
		r = r.WithContext(ctx)
	}

	c := &call{Dashboard: d, w: w, r: r}
	var v *view
	var err error
	if c.who, err = d.door.Admit(r); err == nil {
		c.who.Actor = c.actor(c.who.Actor)
		err = c.begin(route)
	}

	if err == nil {
		v, err = route.run(c)
	}

	if err != nil {
		c.fail(err)
		return
	}
	c.show(v)
}

// actor returns a caller's actor with the reason that a form gives.
func (c *call) actor(of func() inspect.Actor) func() inspect.Actor {
	return func() inspect.Actor {
		a := of()
		a.Reason = strings.Join(strings.Fields(c.r.PostForm.Get("reason")), " ")
		return a
	}
}

// begin reads the parameters that the route needs, and checks whether the page may be seen.
func (c *call) begin(route *route) error {
	if route.method == http.MethodPost {
		if err := c.readForm(); err != nil {
			return err
		}
	}

	if err := c.r.ParseForm(); err != nil {
		return newProblem(http.StatusBadRequest, "The address can't be read",
			"A parameter is malformed. Start from a link of the dashboard.")
	}

	for name, values := range c.r.Form {
		for _, value := range values {
			if most := textLimits[name]; !utf8.ValidString(value) || len(value) > cmp.Or(most, maxText) {
				return newProblem(http.StatusBadRequest, "The request can't be read",
					fmt.Sprintf("The parameter %q is too long or not UTF-8.", name))
			}
		}
	}

	c.queue = c.r.Form.Get("q")
	if c.queue != "" || route.needs {
		if err := core.ValidateQueue(c.queue, 1); err != nil {
			return newProblem(http.StatusNotFound, "There is no such queue", err.Error())
		}
	}

	c.sight = sight{c: c, queues: map[string]bool{}}
	if err := c.sight.begin(route, c.queue); err != nil {
		return err
	}
	c.allowed = true
	if c.r.Form.Get("try") != "" { // a caller without the right must not make pages ask the store
		c.looker.retry()
	}
	return nil
}

// viewing returns the problem of a request that may not see a queue or, for "", pages for all
// queues. It returns nil if the request may.
func (c *call) viewing(queue string) error {
	return c.who.May(service.Action{Verb: string(httpapi.VerbView), Queue: queue})
}

func (c *call) mayView(queue string) bool { return c.viewing(queue) == nil }

// fail shows an error.
func (c *call) fail(err error) {
	p := problemOf(err)
	if p == nil {
		p = newProblem(http.StatusInternalServerError, "The page can't be made", c.errorText("", "", err.Error()))
	}

	if p.Status >= http.StatusInternalServerError && c.r.Method == http.MethodGet {
		copied := *p
		copied.Again = c.with("try", "1")
		p = &copied
		c.lookAgain()
	}
	if p.Back == "" && p.Status != http.StatusNotFound {
		p = problemOf(leadingBack(p, c.list()))
	}
	if p.Status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", httpapi.Challenge)
	}
	c.show(&view{page: "problem", title: p.Title, status: p.Status, body: p})
}

// lookAgain looks at a store that has failed a page, so that the page has the banner of a silent
// store, if there is time left for a look.
func (c *call) lookAgain() {
	if end, limited := c.r.Context().Deadline(); !c.allowed || limited && time.Until(end) < lookTime {
		return
	}
	c.looker.doubt()
	_, _ = c.look()
}

// list returns the list to which a page that can't be shown belongs, without the address's
// parameters, or "" if it belongs to none.
func (c *call) list() string {
	page := strings.TrimPrefix(c.r.URL.Path, "/")
	if page == "schedule" || page == "named" || page == "backfill" {
		page = "schedules"
	}
	if _, known := backs[page]; !c.allowed || !known || page == "id" || len(c.r.URL.Query()) < 2 || c.queue == "" {
		return ""
	}
	return href(page, "q", c.queue)
}

// pages are the templates, by page.
type pages map[string]*template.Template

// parsedPages returns the templates, which all dashboards of a process share.
var parsedPages = sync.OnceValues(parsePages)

func parsePages() (pages, error) {
	layout, err := template.New("layout.html").Funcs(funcs).ParseFS(files, "pages/layout.html", "pages/parts.html")
	if err != nil {
		return nil, err
	}
	entries, err := files.ReadDir("pages")
	if err != nil {
		return nil, err
	}

	all := pages{}
	for _, entry := range entries {
		page, err := layout.Clone()
		if err != nil {
			return nil, err
		}
		if page, err = page.ParseFS(files, "pages/"+entry.Name()); err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(entry.Name(), ".html")] = page
	}
	return all, nil
}

// partsHeader is the number of parts in the script's page, whose ETag is in If-None-Match. The
// answer may then be an update of it.
const partsHeader = "Skein-Parts"

// show writes a page. A live one has an ETag.
func (c *call) show(v *view) {
	if v.to != "" {
		c.w.Header().Set("Location", v.to)
		c.w.WriteHeader(http.StatusSeeOther)
		return
	}

	f := &frame{
		Page:     v.page,
		Title:    v.title,
		Bar:      c.bar(),
		Live:     v.live,
		ReadOnly: c.o.API.ReadOnly,
		Now:      c.looker.now(),
		AsOf:     c.looker.now(),
		Body:     v.body,
		Rest:     service.RestAfter(c.cost, minRest, maxPageRest).Milliseconds(),
	}
	if c.r.URL.Query().Get("reload") != "" && v.live {
		f.Reload = reloadTime
	}
	if v.live {
		f.Again = c.with("reload", map[bool]string{true: "1"}[f.Reload == 0])
	}
	if c.allowed {
		c.know(f)
		f.Counts = c.counted(v.live)
		c.date(f)
	}

	var b bytes.Buffer
	if err := c.pages[v.page].ExecuteTemplate(&b, "layout.html", f); err != nil {
		http.Error(c.w, "the page can't be made: "+c.errorText("", "", err.Error()), http.StatusInternalServerError)
		return
	}

	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", varies)
	h.Set(asOfHeader, when{At: f.AsOf}.ISO())

	page := b.Bytes()
	if f.Silence != nil {
		page = withoutActions(page)
	}
	if v.live {
		l := liveOf(page)
		c.sent.keep(l)
		h.Set("ETag", `W/"`+l.tag+`"`)
		held := strings.TrimSuffix(strings.TrimPrefix(c.r.Header.Get("If-None-Match"), `W/"`), `"`)
		if held == l.tag {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}

		page = l.whole()
		if parts := c.sent.of(held); parts != nil && c.r.Header.Get(partsHeader) == strconv.Itoa(len(parts)) {
			page = l.update(holdsOf(parts))
		}
	}

	send(c.w, c.r, max(v.status, http.StatusOK), page)
}

// bar returns the store's name in the bar.
func (c *call) bar() string {
	if p := pickerOf(c.r); p != nil {
		return cmp.Or(c.o.Title, p.mount.Name)
	}
	return cmp.Or(c.o.Title, "Skein")
}

// know adds to a frame the values that only users who may see the page get.
func (c *call) know(f *frame) {
	f.Flash = c.flash()
	if c.o.API.Actor != nil {
		f.Actor = c.o.API.Actor(c.r)
	}
	if p := pickerOf(c.r); p != nil {
		f.Stores = p.tabs(c.r)
	}
	f.Queue, f.All = c.queue, c.sight.all
	for _, queue := range c.looker.queues() {
		if c.sight.sees(queue) {
			f.Queues = append(f.Queues, queue)
		}
	}
}

// date adds to a frame how old its figures are. Those that the page itself has read are of now.
func (c *call) date(f *frame) {
	f.AsOf, f.Silence = c.looker.age()
	if f.Silence == nil && c.cost > 0 {
		f.AsOf = f.Now
	}
	if f.Silence != nil {
		f.Silence.Again = c.with("try", "1")
		f.Silence.Error = c.sight.failure(f.Silence.Error)
	}
}

// hiddenText stands for the text of an error that may not be shown.
const hiddenText = "…"

// errorText returns an error's text as it may be shown. It is not empty, since pages take a failure
// without a text for none.
func (d *Dashboard) errorText(queue, id, text string) string {
	return cmp.Or(d.door.Service.ErrorText(queue, id, text), hiddenText)
}
