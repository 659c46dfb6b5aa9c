package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
)

// maxPayloads is the maximum number of payloads of each place on the page of an id.
const maxPayloads = 100

// idBody is the page of an id.
type idBody struct {
	Queue, ID string
	Now       time.Time
	// Verdict is the first clause of the verdict, and Detail the rest of it. Badge is its reason.
	Verdict, Detail string
	Badge           badge
	Facts           []fact
	Why             *service.WhyReply
	Hidden          bool // payloads must not be shown
	Others          []foundIn
	// Past are the next run and the known failures, newest first.
	Past []event
	// Audit are the newest actions of operators on the id. AuditFailed is why they can't be read.
	Audit       []auditRow
	AuditFailed string
	May         *rights
	Editable    bool
	Schedules   *scheduleBlock
	// Result is that of the last run that was done, or nil if there is none or it must not be shown.
	Result *payload
	// Pages are the payloads of each place where the id is.
	Pages map[string]*payloadPage
	// seen is the last snapshot that the user may see, or nil.
	seen *snapshot
}

// Server is a server's name, with a link to its page if the server, given by its owner id or its name,
// is listed.
func (b *idBody) Server(server, name string) linkedServer {
	if b.seen == nil || server == "" {
		return linkedServer{"", name}
	}
	if n := b.seen.server(server); n != nil {
		return linkedServer{href("server", "node", n.Owner), name}
	}
	return linkedServer{"", name}
}

// payloadPage is a page of the payloads of a place.
type payloadPage struct {
	Place string
	List  []payload
	// Of is the number of all payloads of the place.
	Of int
	// Later is true if other payloads come before the page. Next is the cursor of the next page, or
	// "".
	Later bool
	Next  string
}

// fact is one line of the checklist behind a verdict.
type fact struct {
	Name, Value string
	// Class shows whether it keeps the job from running: "no", "", or "unknown", and Word says it.
	Class, Word string
}

// classes are the meanings of verdicts.
var classes = map[inspect.Reason]string{
	inspect.OwnerGone:    "bad",
	inspect.OnlyDead:     "bad",
	inspect.QueuePaused:  "paused",
	inspect.NobodyServes: "nobody",
	inspect.ShardUnowned: "nobody",
	inspect.BacksOff:     "late",
	inspect.Held:         "bad",
	inspect.Unreadable:   "late",
}

// idPage makes the page of an id in a queue.
func (c *call) idPage() (*view, error) {
	id := c.r.URL.Query().Get("id")
	b := &idBody{Queue: c.queue, ID: id, May: c.may(), Editable: c.o.API.RedactPayload == nil}

	var err error
	if b.Why, err = asked(c, service.Why, "", &service.WhyQuery{Queue: c.queue, ID: id}); err != nil {
		return nil, err
	}
	if err := c.payloadPages(b); err != nil {
		return nil, err
	}

	if err := c.resultOfID(b); err != nil {
		return nil, err
	}

	b.Now = b.Why.AsOf
	b.Verdict, b.Detail, b.Badge = verdictOf(&b.Why.Verdict)
	b.Facts = factsOf(b.Why.Verdict.Findings)
	b.Past = pastOf(b.Why, b.Now)
	if s, err := c.look(); err == nil {
		b.seen, b.Schedules, b.Others = s, c.blockOfID(s, id), c.otherQueues(s, id)
	}
	c.auditOfID(b)
	return &view{page: "id", title: shown(id), live: true, body: b}, nil
}

// otherQueues returns the other queues that have the id, of those that the user may see.
func (c *call) otherQueues(s *snapshot, id string) []foundIn {
	all := &searchBody{ID: id}
	if err := c.findJobs(all, s); err != nil {
		return nil // the page is about this queue
	}
	return slices.DeleteFunc(all.Found, func(f foundIn) bool { return f.Queue == c.queue })
}

// auditRows is the number of actions on the page of an id.
const auditRows = 5

// auditOfID adds the newest actions of operators on the id.
func (c *call) auditOfID(b *idBody) {
	reply, err := asked(c, service.Audit, "", &service.AuditQuery{Queue: c.queue, ID: b.ID, Limit: auditRows})
	if err != nil {
		b.AuditFailed = c.errorText(c.queue, b.ID, err.Error())
		return
	}
	for at := range reply.Items {
		b.Audit = append(b.Audit, auditRowOf(reply.Items[at].Value(), b.Now))
	}
}

// event is one line of the past of an id, or its next run.
type event struct {
	At when
	// Class is "next" for a run that is to come, and empty for a failure.
	Class, What string
	Error       string
	Server      string
	// Newest is true for the newest failure.
	Newest bool
}

// pastOf returns the next run of a job and the failures that are known of it, of the job that runs and
// of the dead letter, of each newest first.
func pastOf(why *service.WhyReply, now time.Time) (list []event) {
	found := why.Found.Value()
	if q := found.Queued; q != nil {
		if !q.Held {
			list = append(list, event{At: when{q.PerformAt, now}, Class: "next", What: "Next run", Server: ownerOf(why)})
		}
		list = append(list, failuresOf(&q.LastFailure, q.Retries, now)...)
	}
	if j := found.Claimed; j != nil {
		list = append(list, failuresOf(&j.LastFailure, j.Retries, now)...)
	}
	if d := found.DeadLetter; d != nil {
		list = append(list, failuresOf(&d.LastFailure, 0, now)...)
	}
	return list
}

// failuresOf returns the failures that are known, newest first, of a job that has failed a number of
// times or, for 0, of a dead letter.
func failuresOf(last *inspect.LastFailure, number int, now time.Time) (list []event) {
	for at, f := range last.Failures {
		e := event{At: when{f.At, now}, What: "Failure", Error: f.Text, Server: f.On, Newest: at == 0}
		switch {
		case number > at:
			e.What = "Failure " + strconv.Itoa(number-at)
		case at == 0:
			e.What = "Last failure before the morgue"
		}
		list = append(list, e)
	}
	return list
}

// ownerOf returns the name of the server that has the shard of an id, or "".
func ownerOf(why *service.WhyReply) string {
	if why.Owner == nil {
		return ""
	}
	return why.Owner.Name
}

// payloadPages adds the payloads of each place to the page of an id: the first ones, or, in the
// place that the address names, those behind its cursor.
func (c *call) payloadPages(b *idBody) error {
	b.Pages = make(map[string]*payloadPage)
	at := c.r.URL.Query()
	for _, place := range placesOf(b.Why.Found.Value()) {
		page := &payloadPage{Place: place.name, Of: place.count}
		b.Pages[place.name] = page

		ask := &service.PayloadsQuery{ID: b.ID, Place: place.name, Limit: maxPayloads}
		if after := at.Get("after"); after != "" && at.Get("place") == place.name {
			ask.After, page.Later = after, true
		}

		reply, err := asked(c, service.Payloads, c.queue, ask)
		if p := problemOf(err); p != nil && p.Name == "forbidden" {
			b.Hidden = true
			continue
		}
		if err != nil {
			return err
		}
		page.List, page.Next = payloadsOf(reply.Items), reply.Next
	}
	return nil
}

// resultOfID adds the result of the last run that was done to the page of an id. It is hidden from
// users who may not see payloads.
func (c *call) resultOfID(b *idBody) error {
	if p := b.Why.Found.Value().Past; p == nil || p.ResultBytes == 0 {
		return nil
	}

	reply, err := asked(c, service.Find, c.queue, &service.FindQuery{Queue: c.queue, ID: b.ID, Payloads: 1})
	if p := problemOf(err); p != nil && p.Name == "forbidden" {
		b.Hidden = true
		return nil
	}
	if err != nil {
		return err
	}
	for at := range reply.Items {
		if p := reply.Items[at].Value().Past; p != nil && p.ResultBytes > 0 {
			b.Result = &payload{service.Payload{Data: p.Result}}
		}
	}
	return nil
}

// verdictOf returns the title of the page, the rest of the verdict and its reason.
func verdictOf(v *service.Verdict) (title, detail string, mark badge) {
	clause, rest := v.Sentence.Cut()
	if len(rest) > 0 {
		detail = sentence(formatted(rest))
	}
	return strings.TrimSuffix(sentence(formatted(clause)), "."), detail, reasonBadge(v.Reason)
}

// reasonSigns are the marks of reasons by their classes.
var reasonSigns = map[string]string{
	"bad": "●", "paused": "‖", "nobody": "▨", "late": "▲", "good": "✓", "muted": "◦",
}

// reasonBadge returns the mark and the word of a reason.
func reasonBadge(r inspect.Reason) badge {
	class, known := classes[r]
	switch {
	case known:
	case r == inspect.RunsNow || r == inspect.InBuffer || r == inspect.IsNext:
		class = "good"
	default:
		class = "muted"
	}
	return badge{class, reasonSigns[class], r.String()}
}

// formatted returns a sentence about an id as pages show it.
func formatted(s inspect.Sentence) string {
	return s.Format(func(p inspect.Part) string {
		switch p.Kind {
		case inspect.PartSpan:
			return figures.Span(p.Span)
		case inspect.PartTime:
			return p.At.UTC().Format("2 Jan 15:04:05 UTC")
		case inspect.PartError, inspect.PartNote:
			return line(p.Text)
		}
		return p.String()
	})
}

func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:] + "."
}

// factsOf returns the checklist of a verdict, without the lines whose records have sections of
// their own on the page.
func factsOf(findings []inspect.Finding) (list []fact) {
	for _, f := range findings {
		if f.Name == inspect.FindingFailures || f.Name == inspect.FindingMorgue || f.Name == inspect.FindingPast {
			continue
		}

		line := fact{f.Name, formatted(f.Value), "unknown", "not known: "}
		switch f.State {
		case inspect.FindingGood:
			line.Class, line.Word = "", "yes: "
		case inspect.FindingBad:
			line.Class, line.Word = "no", "no: "
		}
		list = append(list, line)
	}
	return list
}

// names lists at most five of many.
func names(list []string) string {
	const most = 5
	more := ""
	if len(list) > most {
		more = fmt.Sprintf(" and %d more", len(list)-most)
		list = list[:most]
	}
	texts := make([]string, len(list))
	for at := range list {
		texts[at] = shown(list[at])
	}
	return strings.Join(texts, ", ") + more
}

// place is a place of an id, with the number of its payloads there.
type place struct {
	name  string
	count int
}

func placesOf(f *service.FoundRow) (list []place) {
	if f.Queued != nil {
		list = append(list, place{"queued", f.Queued.PayloadCount})
	}
	if f.Claimed != nil {
		list = append(list, place{"claimed", f.Claimed.PayloadCount})
	}
	if f.DeadLetter != nil {
		list = append(list, place{"dead", f.DeadLetter.PayloadCount})
	}
	return list
}
