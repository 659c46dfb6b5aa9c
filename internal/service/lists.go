package service

import (
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/shown"
)

// maxPageBytes is the number of bytes of payloads at which a page ends early.
const maxPageBytes = 8 << 20

// Row is a record as it may be shown: each field is redacted by its class.
type Row[T any] = shown.Row[T]

// List is a reply of records.
type List[T any] struct {
	Items     []Row[T]  `json:"items" doc:"the rows"`
	Next      string    `json:"next,omitempty" doc:"the value of after for the next page; absent on the last page"`
	Unreached []string  `json:"unreached,omitempty" doc:"shards that can't be reached now, whose rows are missing"`
	AsOf      time.Time `json:"as_of,omitzero" doc:"the time of the read, by this process's clock"`
}

// Rows returns the items.
func (l *List[T]) Rows() any { return l.Items }

// Describe sets headers for the fields that formats without an envelope leave out.
func (l *List[T]) Describe(h http.Header) {
	h.Set("Skein-As-Of", l.AsOf.Format(time.RFC3339Nano))
	if l.Next != "" {
		h.Set("Skein-Next", l.Next)
	}
	if len(l.Unreached) > 0 {
		h.Set("Skein-Unreached", strconv.Itoa(len(l.Unreached)))
	}
}

func newList[T any](items []Row[T]) *List[T] {
	if items == nil {
		items = []Row[T]{}
	}
	return &List[T]{Items: items, AsOf: time.Now().UTC()}
}

// view returns the view of records of the call's queue, with their payloads if payloads is above 0.
func view[T any](c *call, payloads int) shown.View[T] {
	return shown.NewView[T](redactor{c.Service, payloads > 0}, shown.Of{Queue: c.queue})
}

// rowsOf returns records of the call's queue as they may be shown, without payloads.
func rowsOf[T any](c *call, records []T) (rows []Row[T]) {
	v := view[T](c, 0)
	for at := range records {
		rows = append(rows, v.Row(&records[at]))
	}
	return rows
}

// PageQuery has the common parameters of a queue's lists.
type PageQuery struct {
	After      string `query:"after" doc:"the value of next of the previous page; from is then ignored"`
	Desc       bool   `query:"desc" doc:"list backwards"`
	Limit      int    `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of rows"`
	Shard      []int  `query:"shard" doc:"the index of a shard to list; may be repeated; by default all shards"`
	Payloads   int    `query:"payloads" max:"1000" doc:"the number of payloads of each row to show, lowest score first"`
	ErrorBytes int    `query:"error_bytes" max:"4096" doc:"the number of bytes of each error to show; 0 means all"`
}

func (q *PageQuery) about(a *Action) {
	if q.Payloads > 0 {
		a.Verb = verbViewPayload
	}
}

// options returns the options of a page. from has the form that the order requires.
func (c *call) options(q *PageQuery, sort, from, prefix string) (o inspect.ListOptions, err error) {
	o = inspect.ListOptions{
		SortBy:     orders[sort],
		Descending: q.Desc,
		Prefix:     prefix,
		Shards:     q.Shard,
		Limit:      q.Limit,
		Payloads:   q.Payloads,
		ErrorBytes: q.ErrorBytes,
	}
	if o.After, err = c.cursor(q.After); err != nil || from == "" {
		return o, err
	}

	switch o.SortBy {
	case inspect.ByID, inspect.RetryingByID:
		o.FromID = from
	case inspect.RetryingByCount:
		if o.FromRetries, err = strconv.Atoi(from); err != nil {
			return o, ProblemBadRequest.With("from is %q; a list by retries begins at a number", from)
		}
	default:
		if o.FromTime, err = time.Parse(time.RFC3339Nano, from); err != nil {
			return o, ProblemBadRequest.With(
				"from is %q; a list by time begins at a time such as 2026-01-02T15:04:05Z", from)
		}
	}
	return o, nil
}

// orders are the values of sort.
var orders = map[string]inspect.SortBy{
	"time":        inspect.ByTime,
	"id":          inspect.ByID,
	"retrying":    inspect.RetryingByTime,
	"retrying_id": inspect.RetryingByID,
	"retries":     inspect.RetryingByCount,
}

// entry is a page's access to its elements.
type entry struct {
	cursor inspect.Cursor
	bytes  int
}

// A page of a list by tag ends after maxLooked elements, after maxLookedPayloads if it reads
// payloads, and after tagTime.
const (
	maxLooked         = 10_000
	maxLookedPayloads = 1_000
	tagTime           = LookTime / 2
)

// tagFilter limits a page to the elements with a tag. The zero value is no filter.
type tagFilter[V any] struct {
	tag string
	// most is the maximum number of elements to look at.
	most int
	// of returns the tags of an element, and its access.
	of func(*V) ([]string, entry)
}

// tagged returns the filter for a tag, and sets the limit of the options to the number of elements
// that the filter looks at. It returns an error for a tag that no job can have.
func tagged[V any](o *inspect.ListOptions, tag string, of func(*V) ([]string, entry)) (f tagFilter[V], err error) {
	if tag == "" {
		return tagFilter[V]{of: of}, nil
	}
	if err := checkTag(tag); err != nil {
		return f, err
	}

	f = tagFilter[V]{tag: tag, most: maxLooked, of: of}
	if o.Payloads > 0 {
		f.most = maxLookedPayloads
	}
	o.Limit = f.most
	return f, nil
}

// checkTag returns a problem for a tag that no job can have.
func checkTag(tag string) error {
	if err := core.ValidateTag(tag); err != nil {
		return ProblemBadRequest.With("%v", err)
	}
	return nil
}

// page makes a page of a list. It ends early if the payloads that were read are large. By a tag it
// also ends once the filter has looked at the most elements, or for tagTime.
func page[V any](
	c *call,
	q *PageQuery,
	filter tagFilter[V],
	elements iter.Seq2[V, error],
) (*List[V], error) {
	reply, rows, limit := newList[V](nil), view[V](c, q.Payloads), q.Limit
	began, byTag := time.Now(), filter.tag != ""
	bytes, looked := 0, 0
	for v, err := range elements {
		if err != nil {
			unreached, err := c.partial(err)
			if err != nil {
				return nil, err
			}
			reply.Unreached = shardNames(unreached)
			break
		}

		tags, s := filter.of(&v)
		if looked, bytes = looked+1, bytes+s.bytes; !byTag || slices.Contains(tags, filter.tag) {
			reply.Items = append(reply.Items, rows.Row(&v))
		}

		full := len(reply.Items) == limit || bytes >= maxPageBytes || byTag && time.Since(began) >= tagTime
		if full || looked == filter.most {
			reply.Next = c.sealed(s.cursor.String())
		}
		if full && (len(reply.Items) < limit || byTag) {
			break // more rows may follow; the next page reports shards that can't be reached
		}
	}
	return reply, nil
}

func sizeOf(payloads []core.Payload) (n int) {
	for _, p := range payloads {
		n += len(p.Data) + len(p.Meta)
	}
	return n
}

func shardNames(shards []core.Shard) (names []string) {
	for _, s := range shards {
		names = append(names, s.String())
	}
	return names
}
