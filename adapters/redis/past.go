package redis

import (
	"context"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Past implements [ports.Inspector]. It finds the ids of a page by time, and then reads only their
// records.
func (s *Store) Past(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	_, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.PastPage{}, err
	}

	look := &looker{
		store: s,
		order: order{sets: []int{keyPastByTime}},
		pager: storekit.NewPager[storekit.Listed](r, false),
	}
	var lost storekit.Lost
	if err := storekit.FindPlaces(ctx, look.pager, shards, &lost, look.look); err != nil {
		return ports.PastPage{}, err
	}

	var page ports.PastPage
	var places []storekit.Listed
	places, page.Next = look.pager.Page()
	found, err := s.readPast(ctx, places, r.Marks, &lost)
	if err != nil {
		return ports.PastPage{}, err
	}

	for _, p := range places {
		if v, ok := found[p.At.ID]; ok && int64(v.DoneAt) == p.At.Key {
			if r.Marks {
				v.Past = core.ImportMark(nil, v.Past)
			}
			page.Past = append(page.Past, v)
		}
	}
	page.Unreached, err = lost.Shards(len(shards))
	return page, err
}

// readPast reads the records or the marks at some places, by field. It leaves out those that are gone
// or can't be read.
func (s *Store) readPast(
	ctx context.Context,
	places []storekit.Listed,
	marks bool,
	lost *storekit.Lost,
) (map[string]ports.PastView, error) {
	var shards []core.Shard
	fields := make(map[core.Shard][]any)
	for _, p := range places {
		if _, isMark := record.CutMark(p.At.ID); isMark != marks {
			continue
		}
		if fields[p.Shard] == nil {
			shards = append(shards, p.Shard)
		}
		fields[p.Shard] = append(fields[p.Shard], p.At.ID)
	}

	calls := make([]exchange.Call, len(shards))
	for i, shard := range shards {
		calls[i] = s.read(shard, "hmget", keyPast, fields[shard]...)
	}

	found := make(map[string]ports.PastView, len(places))
	err := s.eachReached(ctx, plainApart, shards, calls, lost, func(i int, o *exchange.Outcome) error {
		r := record.ReplyOf(o.Value)
		for _, field := range fields[shards[i]] {
			text, _ := r.Optional()
			id, _ := record.CutMark(field.(string))
			if p, size, ok := record.ParsePast(id, text); ok {
				found[field.(string)] = ports.PastView{Past: p, ResultBytes: size}
			}
		}
		return r.Err()
	})
	return found, err
}

// parseFoundPast reads the record of an id, its result and its mark, each of which may be nil.
func parseFoundPast(r *record.Reply, id string) (*core.Past, core.Mark) {
	text, _ := r.Optional()
	result, _ := r.Optional()
	markText, _ := r.Optional()
	mark := record.ParseMark(text, markText)
	p, _, ok := record.ParsePast(id, text)
	if !ok {
		return nil, mark
	}
	if result != "" {
		p.Result = []byte(result)
	}
	return &p, mark
}
