package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/skeinq/skein/ports"
)

// Past is the record of what became of an id: its last run that was done. A queue keeps such records
// if it was declared to (docs/rules.md 14).
type Past struct {
	ID string `json:"id" class:"id" doc:"the entity that it is about"`
	// DoneAt is by the store's clock.
	DoneAt time.Time `json:"done_at" class:"public" doc:"when its last run was done"`
	// Node is empty if the server has no name.
	Node string `json:"node" class:"public" doc:"the name of the server that ran the job"`
	// StartedAt is by the store's clock, as the server estimated it.
	StartedAt time.Time     `json:"started_at" class:"public" wide:"true" doc:"when that run started"`
	Took      time.Duration `json:"took_seconds" class:"public" doc:"how long the handler ran"`
	Score     float64       `json:"score" class:"public" doc:"the highest score of the payloads of the run"`
	// PayloadCount does not include payloads of the job that were settled one by one before.
	PayloadCount int `json:"payload_count" class:"public" doc:"the number of payloads that the run ended with"`
	Attempt      int `json:"attempt" class:"public" doc:"1 if the job had not failed before, 2 for the first retry, and so on"`
	ResultBytes  int `json:"result_bytes" class:"public" doc:"the size of the result in bytes; 0 if there is none"`
	// Result is nil in a list. In a [Found] it is nil only if ResultBytes is 0.
	Result []byte `json:"result,omitempty" class:"payload" wide:"true" doc:"what the handler returned, if it is UTF-8; absent in lists, and if the request has no payloads" base64:"what the handler returned, in standard Base64, if it is not UTF-8"`
	// Cursor is the record's position in the list.
	Cursor Cursor `json:"cursor,omitempty" class:"sealed" wide:"true" doc:"its place in the list; after this cursor the next row begins"`
}

// PastOptions select the records of a list. The zero value lists all records, newest first.
type PastOptions struct {
	// OldestFirst reverses the list.
	OldestFirst bool
	// After starts the list behind this position, in the list's direction. The zero value is the
	// start. After takes precedence over FromTime.
	After Cursor
	// FromTime starts the list at runs that were done at this time, inclusive, in the list's
	// direction. The zero value is the start.
	FromTime time.Time
	// Shards are the indexes of the shards to list. nil means all shards, an empty list means no
	// shard.
	Shards []int
	// Limit is the maximum number of records. 0 means no limit.
	Limit int
}

// Past lists the records of what became of the ids of a queue, newest first, without their Result.
// [Inspector.Find] returns the record of one id with its Result. For invalid options the error is
// [ErrInvalidOptions].
func (i *Inspector) Past(ctx context.Context, queue string, o PastOptions) iter.Seq2[Past, error] {
	list := ListOptions{
		Descending: !o.OldestFirst,
		After:      o.After,
		FromTime:   o.FromTime,
		Shards:     o.Shards,
		Limit:      o.Limit,
	}

	return pages(list, list.check("records", ByTime), func(r ports.PageRequest) (listPage[Past], error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.PastPage, error) { return s.Past(ctx, r) })
		return listPage[Past]{convert(page.Past, pastOf), page.Next, page.Unreached}, err
	})
}

// pastOf returns a stored record as operators see it.
func pastOf(v *ports.PastView) Past {
	return Past{
		ID:           v.ID,
		DoneAt:       v.DoneAt.Time(),
		Node:         v.Node,
		StartedAt:    v.Started.Time(),
		Took:         v.Took,
		Score:        v.Score,
		PayloadCount: v.Payloads,
		Attempt:      v.Attempt,
		ResultBytes:  v.ResultBytes,
		Result:       v.Result,
		Cursor:       Cursor{key: int64(v.DoneAt), id: v.ID},
	}
}

// done describes when the last run of the id was done, where, and how long it took. It is empty if
// there is no record.
func (v *Verdict) done() (s Sentence) {
	p := v.Found.Past
	if p == nil {
		return nil
	}

	s = say("%s ago", max(0, v.Now.Sub(p.DoneAt)))
	if p.Node != "" {
		s = s.and(" by server %s", p.Node)
	}
	return s.and(", in %s", p.Took)
}

// ResultOf decodes the result of a record, which skein.SetResult has stored as JSON. A record without
// a result is an error.
func ResultOf[R any](p *Past) (result R, err error) {
	if p.ResultBytes == 0 {
		return result, fmt.Errorf("id %q has no result: its handler has set none", p.ID)
	}
	if err := json.Unmarshal(p.Result, &result); err != nil {
		return result, fmt.Errorf("the result of id %q: %w", p.ID, err)
	}
	return result, nil
}
