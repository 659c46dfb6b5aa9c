package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

func matchOf(values url.Values) service.Match {
	return service.Match{
		Prefix: service.Given(values.Get("prefix")),
		Group:  service.Given(values.Get("group")),
		Error:  service.Given(values.Get("error")),
		Tag:    service.Given(values.Get("tag")),
		State:  service.Given(values.Get("state")),
	}
}

// chosen describes the entries that a match chooses, of things such as dead letters. group is the
// name of the match's group as it may be shown.
func chosen(m service.Match, things, queue, group string) string {
	switch inspect.ErrorState(m.State) {
	case inspect.ErrorRetrying:
		things = "jobs that retry"
	case inspect.ErrorHeld:
		things = "held jobs"
	}

	text := things + " of " + queue
	switch {
	case m.Group != "" && group == "":
		text = things + " of a group of " + queue
	case m.Group != "":
		text += " in the group “" + shown(group) + "”"
	case m.Prefix != "":
		text += " whose id begins with “" + shown(string(m.Prefix)) + "”"
	case m.Error == "" && m.Tag == "" && m.State == "":
		text = "all " + text
	}

	if m.Tag != "" {
		text += " with the tag “" + shown(string(m.Tag)) + "”"
	}
	if m.Error != "" {
		text += " whose error contains “" + shown(string(m.Error)) + "”"
	}

	return text
}

// sheetBody is the preview of an action on all that match, or its progress.
type sheetBody struct {
	Op, Verb, Words, Queue string
	Sure                   bool
	Match                  service.Match
	Before                 time.Time
	Now                    time.Time
	Result                 *service.BulkReply
	Sample                 bool // not all entries were read
	Changed                bool // more entries match than were confirmed
	Linked                 bool
	// Stood is the list as it was when the action was chosen, in hidden fields. Back is its address.
	Stood []hiddenField
	Back  string
	// page is the list's.
	page string
	// AllDue is true if all jobs are already due.
	AllDue bool
}

func (c *call) sheetOf(name string, o *op, m service.Match, before time.Time) *sheetBody {
	b := &sheetBody{
		Op:     name,
		Verb:   o.verb,
		Words:  chosen(m, o.things, c.queue, c.groupName(m)),
		Queue:  c.queue,
		Sure:   o.sure,
		Match:  m,
		Before: before,
		Now:    c.looker.now(),
		Linked: c.o.API.RedactID == nil,
		page:   o.back,
	}

	if c.r.Form.Get("back") == "errors" {
		b.page = "errors"
		b.Stood = fields("back", b.page, "back.all", c.r.Form.Get("back.all"), "back.q", c.r.Form.Get("back.q"))
	}
	b.Stood = append(b.Stood, c.stood(b.page)...)
	if len(b.Stood) == 0 && b.page == "morgue" {
		b.Stood = fields(
			"back.group", string(m.Group),
			"back.error", string(m.Error),
			"back.tag", string(m.Tag),
			"back.prefix", string(m.Prefix),
		)
	}
	b.Back = b.to()
	return b
}

// groupName returns the name of a match's group, or "" if names are not shown. A client names a group
// by its name unless errors are redacted.
func (c *call) groupName(m service.Match) string {
	if c.o.API.RedactError != nil {
		return ""
	}
	return string(m.Group)
}

// stood returns the state of the list on which an action on all was chosen: as the pages in
// between have kept it, or as the list itself sends it.
func (c *call) stood(page string) (list []hiddenField) {
	was := c.stoodOn(page)
	for _, name := range backs[page] {
		value := c.r.Form.Get("back." + name)
		if was != nil {
			value = was.Get(name)
		}
		list = append(list, fields("back."+name, value)...)
	}
	return list
}

// to returns the address of the list, with more parameters. A group is no longer shown once an
// action on it has ended.
func (b *sheetBody) to(params ...string) string {
	ended := len(params) > 0
	if b.page != "errors" { // which has its own queue, or none
		params = append([]string{"q", b.Queue}, params...)
	}
	for _, f := range b.Stood {
		name, kept := strings.CutPrefix(f.Name, "back.")
		gone := ended && b.Match.Group != "" && (name == "group" || name == "after" || name == "open")
		if kept && name != "all" && !gone {
			params = append(params, name, f.Value)
		}
	}
	return href(b.page, params...)
}

// try asks for a preview of an action.
func (c *call) try(b *sheetBody, o *op) error {
	r, err := o.all(c, &service.BulkBody{Match: &b.Match, Before: &b.Before, DryRun: true})
	if err != nil {
		return err
	}

	b.Result = r
	b.Sample = r.LookedAt < r.Total
	if b.Sample {
		if err := c.countGroup(b, o); err != nil {
			return err
		}
	}
	b.AllDue = b.Op == "run-now" && r.Handled == 0 && r.Later == 0 && r.Total > 0 && !b.Sample &&
		b.Match == service.Match{}
	return nil
}

// countGroup replaces the number of a sample by the exact one, if the action is on a whole group of
// dead letters: the store counts these.
func (c *call) countGroup(b *sheetBody, o *op) error {
	if b.Match != (service.Match{Group: b.Match.Group}) || b.Match.Group == "" || o.back != "morgue" {
		return nil
	}
	groups, err := asked(c, service.Groups, c.queue, &service.GroupsQuery{Limit: maxCountedGroups})
	if err != nil {
		return err
	}
	for at := range groups.Items {
		if g := groups.Items[at].Value(); g.Key == string(b.Match.Group) {
			b.Result.Handled, b.Sample = int(g.Count), false
		}
	}
	return nil
}

// admitPreview returns an error if the request may not act: another site's page must not start a
// preview.
func (c *call) admitPreview() error {
	post := c.r.Clone(c.r.Context())
	post.Method = http.MethodPost
	_, err := c.door.Admit(post)
	return err
}

// sheet shows the preview of an action on all that match.
func (c *call) sheet() (*view, error) {
	q := c.r.URL.Query()
	name := q.Get("op")
	o, known := ops[name]
	if !known || o.all == nil {
		return nil, errForm
	}
	if err := c.admitPreview(); err != nil {
		return nil, err
	}

	s, _, err := c.of()
	if err != nil {
		return nil, err
	}
	if s.failed != nil { // entries that can't be looked at now can't be acted on
		return nil, c.storeProblem(s.failed)
	}

	b := c.sheetOf(name, &o, matchOf(q), c.looker.now())
	if err := c.try(b, &o); err != nil {
		return nil, leadingBack(err, b.Back)
	}
	return &view{page: "sheet", title: o.verb, body: b}, nil
}

// actOnAll takes the first or the next step of an action on all that match.
func (c *call) actOnAll(name string, o *op) (*view, error) {
	form := c.r.PostForm
	before, err := time.Parse(time.RFC3339Nano, form.Get("before"))
	if err != nil {
		return nil, errForm
	}

	b := c.sheetOf(name, o, matchOf(form), before)
	going := form.Get("continue")

	// More entries than were confirmed need another confirmation.
	if going == "" && o.sure {
		if err := c.try(b, o); err != nil {
			return nil, leadingBack(err, b.Back)
		}
		if b.grown(form) {
			b.Changed = true
			return &view{page: "sheet", title: o.verb, body: b}, nil
		}
	}

	reply, err := o.all(c, &service.BulkBody{Match: &b.Match, Before: &before, Continue: going})
	c.acted(err)
	failed := ""
	if p := problemOf(err); p != nil && p.Result != nil && p.Result.Continue != "" {
		reply, failed = p.Result, "1"
	} else if err != nil {
		return nil, leadingBack(err, b.Back)
	}

	if reply.Continue == "" {
		return &view{to: b.to("did", name, "n", strconv.Itoa(reply.Handled))}, nil
	}

	stood := make([]string, 0, 2*len(b.Stood))
	for _, f := range b.Stood {
		stood = append(stood, f.Name, f.Value)
	}
	return &view{to: href("steps", append(stood,
		"q", c.queue,
		"op", name,
		"group", string(b.Match.Group),
		"error", string(b.Match.Error),
		"tag", string(b.Match.Tag),
		"prefix", string(b.Match.Prefix),
		"state", string(b.Match.State),
		"before", form.Get("before"),
		"continue", reply.Continue,
		"looked", strconv.Itoa(reply.LookedAt),
		"handled", strconv.Itoa(reply.Handled),
		"total", strconv.Itoa(reply.Total),
		"was", form.Get("looked"),
		"reason", form.Get("reason"),
		"away", strconv.Itoa(len(reply.Unreached)),
		"failed", failed,
	)...)}, nil
}

// grown reports whether an action takes more than was confirmed. There may be fewer, since others
// have dealt with some meanwhile. If only a part was counted, the number that matched means
// nothing: then "or more" was confirmed.
func (b *sheetBody) grown(form url.Values) bool {
	confirmed, err := strconv.Atoi(form.Get("confirm"))
	return err != nil || b.Result.Handled > confirmed && form.Get("sample") == ""
}

// maxCountedGroups is the number of groups among which a preview looks for the exact count of one.
const maxCountedGroups = 1000

// stepsBody is the progress of an action on all that match.
type stepsBody struct {
	*sheetBody
	Continue, Reason       string
	Looked, Handled, Total int
	Away                   int
	// Failed is true if an error of the store cut off the last step.
	Failed bool
	// Auto is true if scripts continue by themselves. It is false if the last step made no
	// progress, for example because shards can't be reached.
	Auto bool
}

// steps shows the progress of an action on all that match. The action continues by a form, which
// scripts send by themselves until the user stops them.
func (c *call) steps() (*view, error) {
	q := c.r.URL.Query()
	name := q.Get("op")
	o, known := ops[name]
	before, err := time.Parse(time.RFC3339Nano, q.Get("before"))
	if err != nil || !known || o.all == nil || q.Get("continue") == "" {
		return nil, newProblem(http.StatusBadRequest, "The address can't be read",
			"It does not belong to an action in progress.")
	}

	b := &stepsBody{
		sheetBody: c.sheetOf(name, &o, matchOf(q), before),
		Continue:  q.Get("continue"),
		Reason:    q.Get("reason"),
	}
	for field, into := range map[string]*int{
		"looked":  &b.Looked,
		"handled": &b.Handled,
		"total":   &b.Total,
		"away":    &b.Away,
	} {
		if n, err := strconv.Atoi(q.Get(field)); err == nil && n >= 0 {
			*into = n
		}
	}

	was, err := strconv.Atoi(q.Get("was"))
	b.Failed = q.Get("failed") != ""
	b.Auto = (err != nil || b.Looked > was) && !b.Failed && c.fromHere()
	return &view{page: "steps", title: o.verb, body: b}, nil
}

// fromHere reports whether one of the dashboard's own pages has led here. Only then does a page
// continue by itself: a link of another site must not be enough to act.
func (c *call) fromHere() bool {
	if site := c.r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	from, err := url.Parse(c.r.Referer())
	return err == nil && from.Host != "" && from.Host == c.r.Host
}
