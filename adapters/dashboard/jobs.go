package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// pageRows is the maximum number of rows of a list.
const pageRows = 50

// jobList is one of the lists of queued jobs.
type jobList struct {
	Name, Title, Heading string
	// sorts are its orders and the API's names for them. The first is the default.
	sorts []sorting
}

type sorting struct{ Name, Title, api string }

var (
	byTime  = sorting{"time", "due", "time"}
	byID    = sorting{"id", "id", "id"}
	byRetry = []sorting{{"time", "due", "retrying"}, {"count", "failures", "retries"}, {"id", "id", "retrying_id"}}
)

// jobLists are the lists, by the parameter list.
var jobLists = []jobList{
	{"waiting", "Waiting", "Waiting jobs", []sorting{byTime, byID}},
	{"fresh", "Fresh", "Jobs without a failure", []sorting{byTime, byID}},
	{"retries", "Retries", "Jobs with a failure", byRetry},
	{"held", "Held", "Jobs that are held after their last retry", []sorting{{"time", "id", "retrying"}}},
	{"scheduled", "Scheduled", "Jobs that were pushed for later", []sorting{byTime}},
}

// jobsBody is the page of a list of jobs.
type jobsBody struct {
	Queue      string
	Now        time.Time
	List       *jobList
	Lists      []tab
	Sort       string
	Sorts      []tab
	Desc       bool
	Turn       string // the list in reverse order
	From       string
	Shard      string
	Prefix     string
	Tag        string
	Rows       []service.Row[inspect.QueuedJob]
	Of         int64
	Next       string
	First      string
	Unreached  []string
	MaxRetries int
	Linked     bool
	May        *rights
	Hidden     []hiddenField
}

// choose returns the requested list and order, or the defaults.
func (b *jobsBody) choose(q url.Values) (order sorting) {
	b.List = &jobLists[0]
	for at := range jobLists {
		if jobLists[at].Name == q.Get("list") {
			b.List = &jobLists[at]
		}
	}

	order = b.List.sorts[0]
	for _, s := range b.List.sorts {
		if s.Name == q.Get("sort") {
			order = s
		}
	}

	b.Sort, b.Desc = order.Name, q.Get("desc") != ""
	b.From, b.Shard, b.Prefix, b.Tag = q.Get("from"), q.Get("shard"), q.Get("prefix"), q.Get("tag")
	return order
}

// jobsPage lists queued jobs.
func (c *call) jobsPage() (*view, error) {
	s, stats, err := c.of()
	if err != nil {
		return nil, err
	}

	q := c.r.URL.Query()
	b := &jobsBody{Queue: c.queue, Now: stats.Now, Linked: c.o.API.RedactID == nil, May: c.may()}
	order := b.choose(q)
	ask := &service.JobsQuery{
		Sort:  order.api,
		From:  b.From,
		Fresh: b.List.Name == "fresh" || b.List.Name == "scheduled", // a failed job waits for its retry
		Held:  b.List.Name == "held",
		Tag:   b.Tag,
		PageQuery: service.PageQuery{
			After: q.Get("after"), Desc: b.Desc, Limit: pageRows, ErrorBytes: 500,
		},
	}
	if ask.Held { // all have the same time
		b.Desc, ask.Desc, b.From, ask.From = false, false, "", ""
	}
	if b.Shard != "" {
		shard, err := strconv.Atoi(b.Shard)
		if err != nil || shard < 0 {
			return nil, service.ProblemBadRequest.With("shard is %q; give a number from 0", b.Shard)
		}
		ask.Shard = []int{shard}
	}
	if b.Sort == "id" {
		ask.Prefix = b.Prefix
	}
	if b.List.Name == "scheduled" && b.From == "" && !b.Desc {
		ask.From = stats.Now.UTC().Format(time.RFC3339Nano)
	}

	reply, err := asked(c, service.Jobs, c.queue, ask)
	if err != nil {
		return nil, err
	}

	b.Rows, b.Unreached = reply.Items, reply.Unreached
	if b.List.Name == "scheduled" && b.Desc {
		b.Rows = slices.DeleteFunc(b.Rows, func(j service.Row[inspect.QueuedJob]) bool {
			return !j.Value().PerformAt.After(stats.Now)
		})
		if len(b.Rows) < len(reply.Items) {
			reply.Next = ""
		}
	}

	if reply.Next != "" && (len(b.Rows) > 0 || b.Tag != "") {
		b.Next = c.with("after", reply.Next)
	}
	if q.Get("after") != "" {
		b.First = c.with("after", "")
	}

	b.tabs(c, map[string]int64{
		"waiting":   stats.Length(),
		"fresh":     stats.Fresh,
		"retries":   stats.Retrying,
		"held":      stats.Held,
		"scheduled": -1,
	})
	for _, server := range s.serversOf(c.queue) {
		b.MaxRetries = max(b.MaxRetries, server.MaxRetries)
	}
	return &view{page: "jobs", title: c.queue + ": " + b.List.Title, live: true, body: b}, nil
}

// Marks reports whether rows can be marked.
func (b *jobsBody) Marks() bool {
	return b.Linked && len(b.Rows) > 0 && b.May.To("run-now", "release", "bury", "delete")
}

// tabs makes the links to the other lists and orders.
func (b *jobsBody) tabs(c *call, of map[string]int64) {
	if b.Of = of[b.List.Name]; b.Tag != "" {
		b.Of = -1 // unknown
	}

	for at := range jobLists {
		l := &jobLists[at]
		b.Lists = append(b.Lists, tab{
			l.Title,
			href("jobs", "q", c.queue, "list", l.Name, "shard", b.Shard, "tag", b.Tag),
			l == b.List,
		})
	}
	for _, s := range b.List.sorts {
		b.Sorts = append(b.Sorts, tab{
			s.Title, c.with("sort", s.Name, "after", "", "from", "", "prefix", ""), s.Name == b.Sort,
		})
	}

	desc := "1"
	if b.Desc {
		desc = ""
	}
	b.Turn = c.with("desc", desc, "after", "")
	b.Hidden = c.kept("q", "list", "sort", "desc")
}
