package redis

import (
	"context"
	"slices"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// order is an order in which entries of shards are listed.
type order struct {
	// sets are the keys of the sorted sets that together have the entries.
	sets []int
	byID bool
	// group is the group of the listed dead letters, which has a set of its own. "" means all groups.
	group string
}

// list is an order of jobs or of dead letters.
type list[T any] struct {
	order
	kind kind[T]
	// key is the sort key before the id. It is nil in lists by id.
	key func(*T) int64
}

// kind is what differs between jobs and dead letters that are read.
type kind[T any] struct {
	// dead is true for dead letters.
	dead  bool
	parse func(id, text string, at core.Instant) (T, error)
	// group is nil for jobs, which have none.
	group func(*T) string
}

// stands reports whether an entry, as it was read, still stands at the place where it was found.
func (l *list[T]) stands(entry *T, at ports.Cursor) bool {
	return (l.key == nil || l.key(entry) == at.Key) && (l.group == "" || l.kind.group(entry) == l.group)
}

func timeOf(j *core.Job) int64          { return int64(j.PerformAt) }
func countOf(j *core.Job) int64         { return int64(j.RetryCount) }
func changeOf(d *core.DeadLetter) int64 { return int64(d.ChangedAt) }
func groupOf(d *core.DeadLetter) string { return d.Group }

// The kinds of entries, and their lists.
var (
	jobKind  = kind[core.Job]{parse: record.ParseJob}
	deadKind = kind[core.DeadLetter]{dead: true, parse: record.ParseDeadLetter, group: groupOf}

	jobLists = [...]list[core.Job]{
		ports.ByTime:          {order{sets: []int{keyReady, keyParked}}, jobKind, timeOf},
		ports.ByID:            {order{sets: []int{keyByID}, byID: true}, jobKind, nil},
		ports.RetryingByTime:  {order{sets: []int{keyRetriesByTime}}, jobKind, timeOf},
		ports.RetryingByID:    {order{sets: []int{keyRetriesByID}, byID: true}, jobKind, nil},
		ports.RetryingByCount: {order{sets: []int{keyRetriesByCount}}, jobKind, countOf},
	}
	deadByTime = list[core.DeadLetter]{order{sets: []int{keyDeadByTime}}, deadKind, changeOf}
	deadByID   = list[core.DeadLetter]{order{sets: []int{keyDeadByID}, byID: true}, deadKind, nil}
)

// looker finds the places of a page.
type looker struct {
	store *Store
	order order
	pager *storekit.Pager[storekit.Listed]
}

// look finds the first places of shards, by plain commands. A script must search only if more
// entries than requested have exactly the score that the page begins at, and stand before it.
func (l *looker) look(ctx context.Context, asks []storekit.Ask) []storekit.Answer {
	calls := make([]exchange.Call, 0, len(asks)*len(l.order.sets))
	for _, ask := range asks {
		for _, set := range l.order.sets {
			calls = append(calls, l.rangeCall(ask, set))
		}
	}

	parts := make([]storekit.Answer, len(calls))
	var stuck []int
	var searches []exchange.Call
	for i, o := range l.store.runApartBy(ctx, plainApart, calls) {
		ask := asks[i/len(l.order.sets)]
		parts[i] = l.answer(ask, o)
		if left := len(parts[i].Places); parts[i].More && left < ask.Most && (left == 0 || ask.Most == l.pager.Need()) {
			stuck = append(stuck, i)
			searches = append(searches, l.search(ask, l.order.sets[i%len(l.order.sets)]))
		}
	}

	for k, o := range l.store.runApartBy(ctx, scriptApart, searches) {
		parts[stuck[k]] = l.answer(asks[stuck[k]/len(l.order.sets)], o)
	}

	answers := make([]storekit.Answer, len(asks))
	for i := range answers {
		answers[i] = l.merged(parts[i*len(l.order.sets):(i+1)*len(l.order.sets)], asks[i].Most)
	}
	return answers
}

// sortedSet names a sorted set of the list in a shard.
func (l *looker) sortedSet(shard core.Shard, set int) []any {
	if l.order.group != "" {
		return []any{l.store.groupKey(shard, l.order.group)}
	}
	return l.store.someKeys(shard, set)
}

// rangeCall returns the command that lists a sorted set from the start of the page.
func (l *looker) rangeCall(ask storekit.Ask, set int) exchange.Call {
	c := exchange.Call{Command: "zrange", Keys: l.sortedSet(ask.Shard, set)}
	start, descending := l.pager.Start(), l.pager.Descending()

	switch {
	case l.order.byID:
		from, to := l.lexRange()
		c.Args = []any{from, to, "bylex"}
	case start.Behind && descending:
		c.Args = []any{start.At.Key, "-inf", "byscore"}
	case start.Behind:
		c.Args = []any{start.At.Key, "+inf", "byscore"}
	default:
		c.Args = []any{0, ask.Most - 1}
	}

	if descending {
		c.Args = append(c.Args, "rev")
	}
	if l.order.byID || start.Behind {
		c.Args = append(c.Args, "limit", 0, ask.Most)
	}
	if !l.order.byID {
		c.Args = append(c.Args, "withscores")
	}
	return c
}

// lexRange returns the bounds of a list by id, as a command takes them.
func (l *looker) lexRange() (from, to string) {
	start, prefix := l.pager.Start(), l.pager.Prefix()
	from, to = "-", "+"
	if l.pager.Descending() {
		from, to = "+", "-"
	}

	switch {
	case start.Behind && start.Inclusive:
		from = "[" + start.At.ID
	case start.Behind:
		from = "(" + start.At.ID
	}

	switch {
	case prefix == "":
	case l.pager.Descending():
		to = "[" + prefix
	default:
		to = "(" + prefix + "\xff" // no UTF-8 text has this byte
	}
	return from, to
}

// search returns the script that lists a sorted set behind the page's start.
func (l *looker) search(ask storekit.Ask, set int) exchange.Call {
	at := l.pager.Start().At
	return exchange.Call{
		Script: placesScript, Keys: l.sortedSet(ask.Shard, set),
		Args: []any{boolArg(l.pager.Descending()), at.Key, at.ID, ask.Most},
	}
}

// answer reads the members of a shard's sorted set, without those before the page's start.
func (l *looker) answer(ask storekit.Ask, o exchange.Outcome) storekit.Answer {
	if o.Err != nil {
		return storekit.Answer{Err: o.Err}
	}
	r := record.ReplyOf(o.Value)
	places := r.Members(!l.order.byID)
	more := len(places) >= ask.Most
	places = slices.DeleteFunc(places, func(at ports.Cursor) bool { return !l.pager.Begins(at) })
	return storekit.Answer{Places: places, More: more, Err: r.Err()}
}

// merged returns the first places of a shard's sorted sets as one list. The list ends at the last
// place of each set that may have more places, because these may come before the places of other
// sets that follow.
func (l *looker) merged(parts []storekit.Answer, most int) storekit.Answer {
	if len(parts) == 1 {
		return parts[0]
	}

	var all storekit.Answer
	for _, part := range parts {
		if part.Err != nil {
			return part
		}
		all.Places = append(all.Places, part.Places...)
		all.More = all.More || part.More
	}

	slices.SortFunc(all.Places, l.pager.Compare)
	for _, part := range parts {
		if !part.More {
			continue
		}
		known := 0
		if n := len(part.Places); n > 0 {
			last := part.Places[n-1]
			known, _ = slices.BinarySearchFunc(all.Places, last, l.pager.Compare)
			known++
		}
		all.Places = all.Places[:min(known, len(all.Places))]
	}

	if len(all.Places) > most {
		all.Places, all.More = all.Places[:most], true
	}
	return all
}
