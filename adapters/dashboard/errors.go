package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
)

// Limits of the page of errors: the number of errors, and the number of jobs and dead letters of the
// opened one.
const (
	errorsShown  = 100
	entriesShown = 100
)

// newError is the age up to which an error counts as new.
const newError = 24 * time.Hour

// errorAges are the choices of how long ago an error was last seen.
var errorAges = []struct {
	value string
	age   time.Duration
}{{"1 h", time.Hour}, {"24 h", 24 * time.Hour}, {"7 d", 7 * 24 * time.Hour}}

// errorsBody is the page of errors.
type errorsBody struct {
	*service.ErrorsReply
	Now       time.Time
	Queue     string
	Chips     []chip
	Tag, Text string
	// Searches is true if errors can be searched for a text.
	Searches bool
	Clear    string
	Causes   []errorCause
	// Queues is the number of queues with errors, and More the number of errors that are not shown.
	Queues, More int
	Linked       bool
	May          *rights
}

// errorCause is a row of the page.
type errorCause struct {
	service.ErrorRow
	Key         string
	Words       []errorWord
	On          string
	Line        string
	LineText    string
	New         bool
	Since, When when
	// Open is true if the row is opened. Toggle is the address that opens or closes it.
	Open   bool
	Toggle string
	// Acts are the actions on the whole error, if each is one action of one queue.
	Acts []errorAct
	// Parts and Facts are those of an opened row.
	Parts   []errorShare
	Entries []inspect.ErrorEntry
	Facts   []errorFact
}

// errorWord is a part of an error's text. Cut is true for the sign of a part that was cut out.
type errorWord struct {
	Text string
	Cut  bool
}

// errorShare is a part of an error: its entries in one queue that one action can act on.
type errorShare struct {
	inspect.ErrorPart
	Href string
	Acts []errorAct
}

// errorFact is a name and a value.
type errorFact struct{ Name, Value string }

// errorAct is a link to the preview of an action on a part of an error.
type errorAct struct {
	Text, Href string
	Danger     bool
}

// errorsPage shows the errors of all queues, or of one.
func (c *call) errorsPage() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}
	if c.queue != "" {
		if _, _, err := c.of(); err != nil {
			return nil, err
		}
	}

	q := c.r.URL.Query()
	b := &errorsBody{
		Queue:    c.queue,
		Tag:      q.Get("tag"),
		Text:     q.Get("text"),
		Searches: c.o.API.RedactError == nil,
		Clear:    "errors",
		Linked:   c.o.API.RedactID == nil,
		May:      c.may(),
	}

	ask := &service.ErrorsQuery{
		Queue: c.queue, Tag: b.Tag, Text: b.Text, Limit: errorsShown, Group: q.Get("open"),
	}
	if ask.Group != "" {
		ask.Entries = entriesShown
	}
	b.filter(s, ask, q.Get("state"), q.Get("since"))

	if b.ErrorsReply, err = asked(c, service.Errors, "", ask); err != nil {
		return nil, err
	}
	b.Now = cmp.Or(b.AsOf, s.view.Now)
	b.causes(c, ask.Group)
	return &view{page: "errors", title: "Errors", live: true, body: b}, nil
}

// filter makes the choices of the filter, and adds the chosen ones to the query. Unknown values
// choose all.
func (b *errorsBody) filter(s *snapshot, ask *service.ErrorsQuery, state, since string) {
	states := []string{string(inspect.ErrorRetrying), string(inspect.ErrorHeld), string(inspect.ErrorDead)}
	if slices.Contains(states, state) {
		ask.State = state
	}

	var ages []string
	for _, a := range errorAges {
		if ages = append(ages, a.value); a.value == since {
			ask.Since = s.view.Now.Add(-a.age)
		}
	}

	b.Chips = []chip{
		chipOf("q", b.Queue, s.queues()...),
		chipOf("state", state, states...),
		chipOf("since", since, ages...),
	}
}

// causes makes the rows. open is the key of the opened one.
func (b *errorsBody) causes(c *call, open string) {
	queues := map[string]bool{}
	for at := range b.Items {
		row := b.Items[at].Value()
		cause := errorCause{
			ErrorRow: *row,
			Key:      row.Key,
			Words:    wordsOf(row.Name),
			Line:     stepsLine(row.Steps),
			LineText: stepsText(row.Steps),
			New:      !row.First.IsZero() && !row.Earlier && b.Now.Sub(row.First) < newError,
			Since:    when{row.First, b.Now},
			When:     when{row.Last, b.Now},
			Open:     row.Key == open,
		}

		for _, p := range row.Parts {
			queues[p.Queue] = true
			share := b.share(c, &p)
			cause.Parts = append(cause.Parts, share)
			cause.Acts = append(cause.Acts, share.Acts...)
		}
		cause.On = strings.Join(row.Queues(), ", ")
		if actsTwice(row.Parts) {
			cause.Acts = nil
		}

		if cause.Toggle = c.with("open", row.Key); cause.Open {
			cause.Toggle = c.with("open", "")
			cause.Entries, cause.Facts = row.Entries, b.facts(row)
		}
		b.Causes = append(b.Causes, cause)
	}
	b.Queues, b.More = len(queues), b.Total-len(b.Items)
}

// actsTwice reports whether an action on a whole error would need several, on parts in one state.
func actsTwice(parts []inspect.ErrorPart) bool {
	retrying, held, dead := 0, 0, 0
	for _, p := range parts {
		for _, of := range []struct {
			n   int64
			sum *int
		}{{p.Retrying, &retrying}, {p.Held, &held}, {p.Dead, &dead}} {
			if of.n > 0 {
				*of.sum++
			}
		}
	}
	return max(retrying, held, dead) > 1
}

// share returns a part with the actions on it that the user may take.
func (b *errorsBody) share(c *call, p *inspect.ErrorPart) errorShare {
	s := errorShare{ErrorPart: *p, Href: href("jobs", "q", p.Queue, "list", "retries", "tag", b.Tag)}
	back := b.back(c)
	add := func(op, verb, state string, n int64) {
		if n == 0 || !b.May.AllOn(p.Queue, op) {
			return
		}
		if verb != "Bury" && verb != "Purge" {
			verb += " " + figures.Count(n)
		}
		to := href("sheet", append(back, "op", op, "q", p.Queue, "group", p.Group, "state", state, "tag", b.Tag)...)
		s.Acts = append(s.Acts, errorAct{Text: verb, Href: to, Danger: ops[op].sure || op == "bury"})
	}

	if p.Dead > 0 {
		s.Href = href("morgue", "q", p.Queue, "group", p.Group, "tag", b.Tag)
	} else if p.Retrying == 0 {
		s.Href = href("jobs", "q", p.Queue, "list", "held", "tag", b.Tag)
	}
	add("revive", "Revive", "", p.Dead)
	add("purge", "Purge", "", p.Dead)
	add("run-now", "Run now", string(inspect.ErrorRetrying), p.Retrying)
	add("bury", "Bury", string(inspect.ErrorRetrying), p.Retrying)
	add("release", "Release", string(inspect.ErrorHeld), p.Held)
	add("bury", "Bury", string(inspect.ErrorHeld), p.Held)
	return s
}

// back returns the parameters by which a preview leads back to the page as it is.
func (b *errorsBody) back(c *call) []string {
	params := []string{"back", "errors", "back.q", c.queue}
	if c.queue == "" {
		params = append(params, "back.all", "1")
	}
	for _, name := range backs["errors"] {
		params = append(params, "back."+name, c.r.URL.Query().Get(name))
	}
	return params
}

// wordsOf divides the name of an error at the signs of parts that were cut out.
func wordsOf(name string) (words []errorWord) {
	for at, text := range strings.Split(name, "#") {
		if at > 0 {
			words = append(words, errorWord{"#", true})
		}
		if text != "" {
			words = append(words, errorWord{Text: shown(text)})
		}
	}
	return words
}

// Size of the drawing of an error's steps.
const (
	stepWidth  = 2.75
	stepHeight = 21.0
)

// stepsLine draws counts as bars from a line, on a scale of its own.
func stepsLine(steps []int64) string {
	most := slices.Max(append([]int64{1}, steps...))
	var path strings.Builder
	for at, n := range steps {
		if n > 0 {
			h := max(1, stepHeight*float64(n)/float64(most))
			fmt.Fprintf(&path, "M%.2f 22v-%.1fh2.2v%.1f", float64(at)*stepWidth, h, h)
		}
	}
	return path.String()
}

// stepsText says what the drawing shows.
func stepsText(steps []int64) string {
	var sum, most int64
	for _, n := range steps {
		sum, most = sum+n, max(most, n)
	}
	return fmt.Sprintf("%s of those that were read failed last within 24 h, at most %s within half an hour",
		figures.Count(sum), figures.Count(most))
}

// facts lists what the shown entries of an opened row have in common.
func (b *errorsBody) facts(row *service.ErrorRow) (facts []errorFact) {
	servers, tags := map[string]int{}, map[string]int{}
	for _, e := range row.Entries {
		if e.LastFailedOn != "" {
			servers[e.LastFailedOn]++
		}
		for _, tag := range e.Tags {
			tags[tag]++
		}
	}

	of := " of " + figures.Exact(int64(len(row.Entries)))
	for name, n := range most(servers) {
		facts = append(facts, errorFact{"last failed on " + shown(name), figures.Exact(int64(n)) + of})
	}
	for name, n := range most(tags) {
		facts = append(facts, errorFact{"tag " + shown(name), figures.Exact(int64(n)) + of})
	}
	return facts
}

// mostFacts is how many servers and how many tags an opened row names.
const mostFacts = 3

// most yields the names that occur most often.
func most(counts map[string]int) func(func(string, int) bool) {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return func(yield func(string, int) bool) {
		for _, name := range names[:min(len(names), mostFacts)] {
			if !yield(name, counts[name]) {
				return
			}
		}
	}
}
