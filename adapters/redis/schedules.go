package redis

import (
	"context"
	"slices"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Schedules implements [ports.Calendar].
func (s *Store) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	q, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.SchedulesPage{}, err
	}
	pager := storekit.NewPager[storekit.Listed](storekit.SchedulePageRequest(&r), true)
	look := scheduleLooker{store: s, r: &r, pager: pager}

	looked := shards
	if r.ID != "" {
		own := core.Shard{Queue: q.Name, Index: core.ShardOf(r.ID, q.Shards)}
		looked = slices.DeleteFunc(slices.Clone(shards), func(shard core.Shard) bool { return shard != own })
	}

	var lost storekit.Lost
	if len(looked) > 0 {
		if err := storekit.FindPlaces(ctx, pager, looked, &lost, look.look); err != nil {
			return ports.SchedulesPage{}, err
		}
	}

	places, next := pager.Page()
	keys := make([]core.ScheduleKey, len(places))
	for i, p := range places {
		keys[i] = storekit.ScheduleOfName(p.At.ID)
	}
	read, err := s.readSchedules(ctx, q, shards, keys, &lost)
	if err != nil {
		return ports.SchedulesPage{}, err
	}

	page := ports.SchedulesPage{Now: read.now, Next: storekit.ScheduleOfName(next.ID)}
	for _, key := range keys {
		if schedule, ok := read.byKey[key]; ok {
			page.Schedules = append(page.Schedules, schedule)
		}
	}
	page.Unreached, err = lost.Shards(len(shards))
	return page, err
}

// scheduleLooker finds the places of a page of schedules.
type scheduleLooker struct {
	store *Store
	r     *ports.SchedulesRequest
	pager *storekit.Pager[storekit.Listed]
}

// look finds the first places of shards, by plain commands.
func (l *scheduleLooker) look(ctx context.Context, asks []storekit.Ask) []storekit.Answer {
	from, to := l.bounds()
	calls := make([]exchange.Call, len(asks))
	for i, ask := range asks {
		calls[i] = exchange.Call{
			Command: "zrange",
			Keys:    l.store.someKeys(ask.Shard, keyScheduleNames),
			Args:    []any{from, to, "bylex", "limit", 0, ask.Most},
		}
	}

	answers := make([]storekit.Answer, len(asks))
	for i, o := range l.store.runApartBy(ctx, plainApart, calls) {
		if o.Err != nil {
			answers[i].Err = o.Err
			continue
		}
		reply := record.ReplyOf(o.Value)
		for _, at := range reply.Members(false) {
			answers[i].Places = append(answers[i].Places, ports.Cursor{ID: placeOfSchedule(at.ID)})
		}
		answers[i].More, answers[i].Err = len(answers[i].Places) >= asks[i].Most, reply.Err()
	}
	return answers
}

// bounds returns the first and the last member of the shards' lists for the page, as
// lua/lib/schedules.lua has them.
func (l *scheduleLooker) bounds() (from, to string) {
	if l.r.ID != "" {
		return l.boundsOfID()
	}

	start := l.pager.Start()
	from, to = "[n", "(o"
	switch {
	case start.Behind && start.Inclusive:
		from = "[n" + start.At.ID
	case start.Behind:
		from = "(n" + start.At.ID
	}
	if l.r.Name != "" {
		to = "(n" + l.r.Name + "\x01"
	}
	return from, to
}

// boundsOfID is bounds for the schedules of one id, which are in order of name.
func (l *scheduleLooker) boundsOfID() (from, to string) {
	member := func(name string) string {
		return "i" + storekit.ScheduleByID(core.ScheduleKey{ID: l.r.ID, Name: name})
	}
	start, r := l.pager.Start(), l.r

	from, to = "["+member(r.After.Name), "(i"+r.ID+"\x01"
	if start.Behind && !start.Inclusive && r.After.ID >= r.ID {
		from = "(" + member(r.After.Name)
	}
	if r.Name != "" {
		to = "[" + member(r.Name)
		if start.Inclusive {
			from = to
		}
	}
	return from, to
}

// placeOfSchedule returns the place of a schedule in the order of the page, given its member of a
// shard's list.
func placeOfSchedule(member string) string {
	if byID, ok := strings.CutPrefix(member, "i"); ok {
		id, name, _ := strings.Cut(byID, "\x00")
		return storekit.ScheduleByName(core.ScheduleKey{ID: id, Name: name})
	}
	return strings.TrimPrefix(member, "n")
}

// schedulesRead are schedules that were read, and the store's time.
type schedulesRead struct {
	byKey map[core.ScheduleKey]core.Schedule
	now   core.Instant
}

// readSchedules reads the schedules of keys. It leaves out those that are gone or can't be read. If
// there are no keys, it only reads the time of the first shard that can be reached.
func (s *Store) readSchedules(
	ctx context.Context,
	q queueRecord,
	shards []core.Shard,
	keys []core.ScheduleKey,
	lost *storekit.Lost,
) (schedulesRead, error) {
	fields := make(map[core.Shard][]any)
	for _, key := range keys {
		shard := core.Shard{Queue: q.Name, Index: core.ShardOf(key.ID, q.Shards)}
		fields[shard] = append(fields[shard], storekit.ScheduleByID(key))
	}
	asked := slices.DeleteFunc(slices.Clone(shards), func(shard core.Shard) bool {
		return lost.Has(shard) || len(keys) > 0 && fields[shard] == nil
	})
	if len(keys) == 0 {
		asked = asked[:min(1, len(asked))]
	}

	calls := make([]exchange.Call, len(asked))
	for i, shard := range asked {
		calls[i] = exchange.Call{
			Script: schedulesScript,
			Keys:   s.someKeys(shard, keyMeta, keySchedules),
			Args:   append([]any{s.now()}, fields[shard]...),
		}
	}

	read := schedulesRead{byKey: make(map[core.ScheduleKey]core.Schedule, len(keys))}
	err := s.eachReached(ctx, scriptApart, asked, calls, lost, func(i int, o *exchange.Outcome) error {
		return read.add(o.Value, fields[asked[i]])
	})
	return read, err
}

// add adds the schedules of fields, given the reply of the schedules script.
func (s *schedulesRead) add(value any, fields []any) error {
	r := record.ReplyOf(value)
	_ = r.Text()
	s.now = core.Instant(r.Int())
	for _, field := range fields {
		text, found := r.Optional()
		if !found {
			continue
		}
		if schedule, err := parseSchedule(field.(string), text); err == nil {
			s.byKey[schedule.ScheduleKey] = schedule
		}
	}
	return r.Err()
}

// ScheduleNames implements [ports.Calendar].
func (s *Store) ScheduleNames(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
	q, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}
	var lost storekit.Lost
	page, err := s.findNames(ctx, &r, shards, &lost)
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}

	keys := make([]core.ScheduleKey, len(page.Names))
	for i := range page.Names {
		keys[i] = page.Names[i].First.ScheduleKey
	}
	if len(keys) > 0 {
		read, err := s.readSchedules(ctx, q, shards, keys, &lost)
		if err != nil {
			return ports.ScheduleNamesPage{}, err
		}
		for i, key := range keys {
			first, ok := read.byKey[key]
			if !ok {
				if first, err = storekit.NextReadable(ctx, s, &r, key.Name); err != nil {
					return ports.ScheduleNamesPage{}, err
				}
			}
			page.Names[i].First = first
		}
	}
	page.Unreached, err = lost.Shards(len(shards))
	return page, err
}

// findNames returns a page of names whose First have only their keys.
func (s *Store) findNames(
	ctx context.Context,
	r *ports.ScheduleNamesRequest,
	shards []core.Shard,
	lost *storekit.Lost,
) (page ports.ScheduleNamesPage, err error) {
	calls := make([]exchange.Call, len(shards))
	for i, shard := range shards {
		calls[i] = exchange.Call{
			Script: scheduleNamesScript,
			Keys:   s.someKeys(shard, keyMeta, keyScheduleNames),
			Args:   []any{s.now(), r.After, r.Size() + 1},
		}
	}

	var sums storekit.ScheduleNameSums
	err = s.eachReached(ctx, scriptApart, shards, calls, lost, func(_ int, o *exchange.Outcome) (err error) {
		page.Now, err = addNames(&sums, o.Value)
		return err
	})
	page.Names, page.Next = sums.Page(r.Size())
	return page, err
}

// addNames adds the names of a shard, and returns the store's time.
func addNames(sums *storekit.ScheduleNameSums, value any) (core.Instant, error) {
	r := record.ReplyOf(value)
	_ = r.Text()
	now := core.Instant(r.Int())
	for r.More() {
		n := ports.ScheduleName{Name: r.Text(), Count: r.Int()}
		n.First.ScheduleKey = core.ScheduleKey{ID: r.Text(), Name: n.Name}
		sums.Add(n)
	}
	return now, r.Err()
}
