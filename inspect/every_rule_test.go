package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

var everyRule = core.MergeRule{Same: core.SamePush}

// counted is a queue "counted" by the rule every, whose jobs and dead letters have equal payloads.
type counted struct {
	*inspect.Inspector
	t     *testing.T
	store *memory.Store
}

func newCounted(t *testing.T) *counted {
	store := memory.New(memory.Options{})
	c := &counted{inspect.New(store, inspect.Options{}), t, store}
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{
		Queue:    "counted",
		Shards:   2,
		IndexIDs: true,
		Merge:    everyRule,
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// push pushes payloads, as data@score.
func (c *counted) push(id string, payloads ...string) {
	c.t.Helper()
	r := ports.PushRequest{Queue: "counted", Shards: 2, Generation: 1}
	for _, p := range payloads {
		r.Entries = append(r.Entries, core.Entry{ID: id, Payload: everyRule.Stored(parsed(c.t, p))})
	}
	if _, err := c.store.Push(c.t.Context(), r); err != nil {
		c.t.Fatal(err)
	}
}

func parsed(t *testing.T, text string) core.Payload {
	t.Helper()
	data, score, _ := strings.Cut(text, "@")
	p := core.Payload{Data: []byte(data)}
	if _, err := fmt.Sscan(score, &p.Score); err != nil {
		t.Fatal(err)
	}
	return p
}

// has checks what a queue has queued and dead for an id, by each way to look.
func (c *counted) has(queue, id string, queued, dead []string) {
	c.t.Helper()
	check := func(way string, got []core.Payload, want []string) {
		c.t.Helper()
		var texts []string
		for _, p := range got {
			texts = append(texts, fmt.Sprintf("%s@%v", p.Data, p.Score))
		}
		if diff := cmp.Diff(want, texts); diff != "" {
			c.t.Errorf("%s of %s (-want +got):\n%s", way, id, diff)
		}
	}

	found, err := c.Find(c.t.Context(), queue, id)
	if err != nil {
		c.t.Fatal(err)
	}

	var inQueue, inMorgue []core.Payload
	if found.Queued != nil {
		inQueue = found.Queued.Payloads
	}
	if found.DeadLetter != nil {
		inMorgue = found.DeadLetter.Payloads
	}

	check("Find", inQueue, queued)
	check("Find in the morgue", inMorgue, dead)

	for place, want := range map[inspect.Place][]string{inspect.PlaceQueued: queued, inspect.PlaceDead: dead} {
		var got []core.Payload
		for p := range must(c.t, c.Payloads(c.t.Context(), queue, id, inspect.PayloadOptions{Place: place})) {
			got = append(got, p.Payload)
		}
		check("Payloads "+place.String(), got, want)
	}

	list := inspect.ListOptions{SortBy: inspect.ByID, FromID: id, Limit: 1, Payloads: 10}
	for j := range must(c.t, c.Jobs(c.t.Context(), queue, list)) {
		if j.ID == id {
			check("Jobs", j.Payloads, queued)
		}
	}
	for d := range must(c.t, c.Morgue(c.t.Context(), queue, list)) {
		if d.ID == id {
			check("Morgue", d.Payloads, dead)
		}
	}
	for d := range must(c.t, c.Export(c.t.Context(), queue, inspect.ListOptions{})) {
		if d.ID == id {
			check("Export", d.Payloads, dead)
		}
	}
}

func (c *counted) handled(what string, r inspect.Result, err error, want int) {
	c.t.Helper()
	if err != nil || r.Handled != want {
		c.t.Errorf("%s: %+v, %v; want %d handled", what, r, err, want)
	}
}

func TestCopiesOfEqualBytesAreNamedTogether(t *testing.T) {
	c := newCounted(t)
	named := func(data ...string) []inspect.DeadLetterPayloads {
		p := inspect.DeadLetterPayloads{ID: "a"}
		for _, d := range data {
			p.Payloads = append(p.Payloads, []byte(d))
		}
		return []inspect.DeadLetterPayloads{p, {ID: "nobody", Payloads: p.Payloads}}
	}
	c.push("a", "x@1", "y@2", "x@3", "z@4", "x@5", "x@5")
	c.has("counted", "a", []string{"x@1", "y@2", "x@3", "z@4", "x@5"}, nil)

	first := []inspect.FirstPayload{{ID: "a", Data: []byte("x")}}
	r, err := c.Bury(t.Context(), "counted", inspect.FirstPayloads(first...))
	c.handled("BuryFirst", r, err, 1)
	r, err = c.Bury(t.Context(), "counted", inspect.FirstPayloads(first...))
	c.handled("BuryFirst of another payload", r, err, 0)
	c.has("counted", "a", []string{"y@2", "x@3", "z@4", "x@5"}, []string{"x@1"})
	r, err = c.Delete(t.Context(), "counted",
		inspect.FirstPayloads(inspect.FirstPayload{ID: "a", Data: []byte("y")}, inspect.FirstPayload{ID: "nobody"}))
	c.handled("DeleteFirst", r, err, 1)
	again := func(_ string, p core.Payload) ([]byte, bool, error) { return p.Data, p.Score == 1, nil }
	r, err = c.EditJob(t.Context(), "counted", "a", [][]byte{[]byte("x")}, again)
	c.handled("EditJob that changes nothing", r, err, 0)
	away := func(_ string, p core.Payload) ([]byte, bool, error) { return []byte("y"), p.Score == 3, nil }
	r, err = c.EditJob(t.Context(), "counted", "a", [][]byte{[]byte("x")}, away)
	c.handled("EditJob", r, err, 1)
	c.has("counted", "a", []string{"y@3", "z@4", "x@5"}, []string{"x@1"})
	back := func(_ string, p core.Payload) ([]byte, bool, error) { return []byte("x"), true, nil }
	r, err = c.EditJob(t.Context(), "counted", "a", [][]byte{[]byte("y")}, back)
	c.handled("EditJob back", r, err, 1)

	r, err = c.Bury(t.Context(), "counted", inspect.JobIDs("a"))
	c.handled("Bury", r, err, 1)
	c.has("counted", "a", nil, []string{"x@1", "x@3", "z@4", "x@5"})

	edit := func(_ string, p core.Payload) ([]byte, bool, error) {
		if p.Score == 3 {
			return []byte("w"), true, nil
		}
		return p.Data, true, nil // as it was
	}
	r, err = c.Edit(t.Context(), "counted", inspect.DeadPayloads(named("x")...), edit)
	c.handled("EditPayloads", r, err, 1)
	c.has("counted", "a", nil, []string{"x@1", "w@3", "z@4", "x@5"})
	up := func(_ string, p core.Payload) ([]byte, bool, error) { return bytes.ToUpper(p.Data), true, nil }
	r, err = c.Edit(t.Context(), "counted", inspect.AllDead(nil, inspect.BulkOptions{}), up)
	c.handled("EditAll", r, err, 4)
	c.has("counted", "a", nil, []string{"X@1", "W@3", "Z@4", "X@5"})

	r, err = c.Revive(t.Context(), "counted", inspect.DeadPayloads(named("X", "x")...))
	c.handled("RevivePayloads", r, err, 1)
	c.has("counted", "a", []string{"X@1", "X@5"}, []string{"W@3", "Z@4"})
	r, err = c.Purge(t.Context(), "counted", inspect.DeadPayloads(named("nothing")...))
	c.handled("PurgePayloads of absent payloads", r, err, 0)
	r, err = c.Purge(t.Context(), "counted", inspect.DeadPayloads(named("W")...))
	c.handled("PurgePayloads", r, err, 1)
	c.has("counted", "a", []string{"X@1", "X@5"}, []string{"Z@4"})
	match := func(d inspect.DeadLetter) bool { return string(d.Payloads[0].Data) == "Z" }
	r, err = c.Revive(t.Context(), "counted", inspect.AllDead(match, inspect.BulkOptions{}))
	c.handled("ReviveAll", r, err, 1)
	c.has("counted", "a", []string{"X@1", "Z@4", "X@5"}, nil)
}

// What moves between queues of different rules merges by the rule of the target, and looks as it
// was pushed in both.
func TestPayloadsMoveAndImportByTheRuleOfTheirTarget(t *testing.T) {
	for rule, want := range map[core.MergeRule][]string{
		{}:                    {"x@1", "y@2"},
		{Stays: core.Highest}: {"y@2", "x@3"},
		everyRule:             {"x@1", "y@2", "x@3"},
		everyRule.Last(2):     {"y@2", "x@3"},
	} {
		t.Run(rule.String(), func(t *testing.T) {
			c := newCounted(t)

			for _, queue := range []string{"moved", "back"} {
				r := ports.DeclareRequest{Queue: queue, Shards: 2, IndexIDs: true, Merge: everyRule}
				if queue == "moved" {
					r.Merge = rule
				}
				if _, err := c.store.Declare(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if err := c.Pause(t.Context(), queue); err != nil {
					t.Fatal(err)
				}
			}

			c.push("dead", "x@1", "y@2", "x@3")
			r, err := c.Bury(t.Context(), "counted", inspect.JobIDs("dead"))
			c.handled("Bury", r, err, 1)
			c.push("a", "x@1", "y@2", "x@3")

			var exported []core.DeadLetter
			for d := range must(t, c.Export(t.Context(), "counted", inspect.ListOptions{})) {
				d.ID = "imported"
				d.Payloads = slices.Clone(d.Payloads)
				exported = append(exported, d)
			}

			list := func(yield func(core.DeadLetter, error) bool) {
				for _, d := range exported {
					if !yield(d, nil) {
						return
					}
				}
			}

			r, err = c.Import(t.Context(), "moved", list, nil)
			c.handled("Import", r, err, 1)
			c.has("moved", "imported", nil, want)

			r, err = c.Move(t.Context(), "counted", movedTo, inspect.JobIDs("a", "dead"))
			c.handled("Move", r, err, 2)
			c.has("counted", "a", nil, nil)
			c.has("counted", "dead", nil, nil)
			c.has("moved", "a", want, nil)
			c.has("moved", "dead", nil, want)

			stats, err := c.Stats(t.Context(), "moved")
			dropped := map[bool]int64{true: 3}[rule.Keep > 0] // one of each id
			if err != nil || stats[0].Superseded != dropped {
				t.Errorf("%d superseded, %v; want %d", stats[0].Superseded, err, dropped)
			}

			r, err = c.Move(t.Context(), "moved", inspect.Target{Queue: "back"},
				inspect.AllJobs(nil, inspect.BulkOptions{}))
			c.handled("MoveAll", r, err, 1)
			r, err = c.MoveMorgue(t.Context(), "moved", inspect.Target{Queue: "back"},
				inspect.AllDead(nil, inspect.BulkOptions{}))
			c.handled("MoveMorgue", r, err, 2)

			for _, id := range []string{"a", "dead", "imported"} {
				c.has("moved", id, nil, nil)
			}

			c.has("back", "a", want, nil)
			c.has("back", "dead", nil, want)
			c.has("back", "imported", nil, want)
		})
	}
}

// Bytes that look like the stamp of every belong to the payload in a queue by another rule, by each
// way to look, to change and to move it. In a queue by every they stand behind the stamp.
func TestBytesThatLookLikeAStampBelongToThePayload(t *testing.T) {
	like := everyRule.Stored(core.Payload{Data: []byte("x"), Score: 7})
	text := fmt.Sprintf("%s@7", like.Data)
	for _, rule := range []core.MergeRule{{}, {Stays: core.Highest}, everyRule} {
		t.Run(rule.String(), func(t *testing.T) {
			c := newCounted(t)
			for _, r := range []ports.DeclareRequest{
				{Queue: "source", Shards: 2, IndexIDs: true, Merge: rule},
				{Queue: "moved", Shards: 2, IndexIDs: true},
				{Queue: "back", Shards: 2, IndexIDs: true, Merge: everyRule},
			} {
				if _, err := c.store.Declare(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.store.Push(t.Context(), ports.PushRequest{
				Queue: "source", Shards: 2, Generation: 1,
				Entries: []core.Entry{{ID: "a", Payload: rule.Stored(like)}, {ID: "b", Payload: rule.Stored(like)}},
			}); err != nil {
				t.Fatal(err)
			}
			c.has("source", "a", []string{text}, nil)

			first := inspect.FirstPayload{ID: "a", Data: []byte("x")}
			r, err := c.Bury(t.Context(), "source", inspect.FirstPayloads(first))
			c.handled("Bury by a part of the bytes", r, err, 0)
			first.Data = like.Data
			r, err = c.Bury(t.Context(), "source", inspect.FirstPayloads(first))
			c.handled("Bury", r, err, 1)
			c.has("source", "a", nil, []string{text})

			seen := func(d inspect.DeadLetter) bool { return bytes.Equal(d.Payloads[0].Data, like.Data) }
			add := func(_ string, p core.Payload) ([]byte, bool, error) { return append(p.Data, '!'), true, nil }
			cut := func(_ string, p core.Payload) ([]byte, bool, error) {
				return bytes.TrimSuffix(p.Data, []byte("!")), true, nil
			}
			r, err = c.Edit(t.Context(), "source", inspect.AllDead(seen, inspect.BulkOptions{}), add)
			c.handled("Edit of all", r, err, 1)
			c.has("source", "a", nil, []string{fmt.Sprintf("%s!@7", like.Data)})
			named := inspect.DeadLetterPayloads{ID: "a", Payloads: [][]byte{append(bytes.Clone(like.Data), '!')}}
			r, err = c.Edit(t.Context(), "source", inspect.DeadPayloads(named), cut)
			c.handled("Edit", r, err, 1)
			c.has("source", "a", nil, []string{text})

			var exported []core.DeadLetter
			for d := range must(t, c.Export(t.Context(), "source", inspect.ListOptions{})) {
				d.ID = "imported"
				exported = append(exported, d)
			}
			for _, queue := range []string{"moved", "back"} {
				if err := c.Pause(t.Context(), queue); err != nil {
					t.Fatal(err)
				}
				list := func(yield func(core.DeadLetter, error) bool) { _ = yield(exported[0], nil) }
				r, err = c.Import(t.Context(), queue, list, nil)
				c.handled("Import", r, err, 1)
				c.has(queue, "imported", nil, []string{text})
			}

			looksAlike := func(j inspect.QueuedJob) bool { return bytes.Equal(j.Payloads[0].Data, like.Data) }
			r, err = c.Move(t.Context(), "source", movedTo, inspect.JobIDs("a"))
			c.handled("Move", r, err, 1)
			r, err = c.Move(t.Context(), "source", movedTo, inspect.AllJobs(looksAlike, inspect.BulkOptions{}))
			c.handled("Move of all", r, err, 1)
			c.has("moved", "a", nil, []string{text})
			c.has("moved", "b", []string{text}, nil)

			back := inspect.Target{Queue: "back"}
			r, err = c.Move(t.Context(), "moved", back, inspect.AllJobs(nil, inspect.BulkOptions{}))
			c.handled("Move back", r, err, 1)
			r, err = c.MoveMorgue(t.Context(), "moved", back, inspect.AllDead(seen, inspect.BulkOptions{}))
			c.handled("MoveMorgue back", r, err, 2)
			c.has("back", "b", []string{text}, nil)
			c.has("back", "a", nil, []string{text})
			c.has("back", "imported", nil, []string{text})
		})
	}
}

// Stamps make payloads larger, so what just fits into a step of the source exceeds one of the
// target.
func TestEntriesThatJustFitIntoAStepMoveIntoAnEveryQueue(t *testing.T) {
	c := newCounted(t)
	for _, queue := range []string{"plain", "last"} {
		r := ports.DeclareRequest{Queue: queue, Shards: 1, IndexIDs: true}
		if queue == "last" {
			r.Merge = everyRule
		}
		if _, err := c.store.Declare(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Pause(t.Context(), "last"); err != nil {
		t.Fatal(err)
	}

	const payloads, size = 16, core.MaxStepBytes / 16
	for id := range 4 {
		r := ports.PushRequest{Queue: "plain", Shards: 1, Generation: 1}
		for n := range payloads {
			data := make([]byte, size)
			data[0] = byte(n)
			r.Entries = append(r.Entries, core.Entry{
				ID:      fmt.Sprint(id),
				Payload: core.Payload{Data: data, Score: float64(n)},
			})
		}
		if _, err := c.store.Push(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}

	r, err := c.Bury(t.Context(), "plain", inspect.JobIDs("2", "3"))
	c.handled("Bury", r, err, 2)
	to := inspect.Target{Queue: "last"}
	r, err = c.Move(t.Context(), "plain", to, inspect.JobIDs("0", "2"))
	c.handled("Move", r, err, 2)
	r, err = c.Move(t.Context(), "plain", to, inspect.AllJobs(nil, inspect.BulkOptions{}))
	c.handled("MoveAll", r, err, 1)
	r, err = c.MoveMorgue(t.Context(), "plain", to, inspect.AllDead(nil, inspect.BulkOptions{}))
	c.handled("MoveMorgue", r, err, 1)

	for id, place := range []inspect.Place{
		inspect.PlaceQueued,
		inspect.PlaceQueued,
		inspect.PlaceDead,
		inspect.PlaceDead,
	} {
		n := 0
		for p := range must(t, c.Payloads(t.Context(), "last", fmt.Sprint(id), inspect.PayloadOptions{Place: place})) {
			if len(p.Data) != size || p.Data[0] != byte(n) || p.Score != float64(n) {
				t.Errorf("payload %d of %d: %d bytes, %d at %v", n, id, len(p.Data), p.Data[0], p.Score)
			}
			n++
		}
		if n != payloads {
			t.Errorf("id %d has %d payloads, want %d", id, n, payloads)
		}
	}

	stats, err := c.Stats(t.Context(), "plain")
	if err != nil || stats[0].Length() != 0 || stats[0].Dead != 0 {
		t.Errorf("the source has %+v, %v", stats[0].Counts, err)
	}
}

// A dead letter may have more copies of the named bytes than a step handles.
func TestAllCopiesAreHandledInSteps(t *testing.T) {
	c := newCounted(t)
	const copies = 2*core.MaxTurnPayloads + 1
	for n := range copies {
		c.push("a", fmt.Sprint("x@", n))
	}
	c.push("a", "y@-1")

	for range 10 { // a step buries a part
		if _, err := c.Bury(t.Context(), "counted", inspect.JobIDs("a")); err != nil {
			t.Fatal(err)
		}
	}

	if r, err := c.Revive(t.Context(), "counted", inspect.DeadPayloads(inspect.DeadLetterPayloads{
		ID:       "a",
		Payloads: [][]byte{[]byte("x")},
	})); err != nil || r.Handled != 1 {
		t.Errorf("RevivePayloads: %+v, %v; want one dead letter handled", r, err)
	}

	found, err := c.Find(t.Context(), "counted", "a")
	if err != nil || found.Queued == nil || found.Queued.PayloadCount != copies || found.DeadLetter == nil ||
		found.DeadLetter.PayloadCount != 1 {
		t.Errorf("%+v, %v; want %d payloads queued and one dead", found, err, copies)
	}
}

// reburying buries again what a step revives, as a server does whose handler refuses all.
type reburying struct {
	inspect.Store
	revives int
}

func (s *reburying) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	s.revives++
	reply, err := s.Store.Revive(ctx, r)
	if err != nil {
		return reply, err
	}
	for more := true; more; {
		buried, err := s.Bury(ctx, ports.JobStep{Shard: r.Shard, IDs: []string{"a"}})
		if err != nil {
			return reply, err
		}
		more = buried.Reached == 0
	}
	return reply, nil
}

func TestARevivalOfCopiesEndsThoughTheyAreBuriedAgain(t *testing.T) {
	c := newCounted(t)
	const copies = 2*core.MaxTurnPayloads + 1
	for n := range copies {
		c.push("a", fmt.Sprint("x@", n))
	}

	for range 10 { // a step buries a part
		if _, err := c.Bury(t.Context(), "counted", inspect.JobIDs("a")); err != nil {
			t.Fatal(err)
		}
	}

	store := &reburying{Store: c.store}
	r, err := inspect.New(store,
		inspect.Options{}).Revive(t.Context(), "counted", inspect.DeadPayloads(inspect.DeadLetterPayloads{
		ID:       "a",
		Payloads: [][]byte{[]byte("x")},
	}))
	if err != nil || r.Handled != 1 || store.revives != 3 {
		t.Errorf("RevivePayloads: %+v, %v, in %d steps; want one dead letter in 3", r, err, store.revives)
	}
}

// everyAway is a store whose first shard can't be reached.
type everyAway struct{ away0 }

func (f everyAway) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	if core.ShardOf(r.ID, 2) == 0 {
		return ports.Found{}, errors.New("master is away")
	}
	return f.away0.Find(ctx, r)
}

func TestNamedPayloadsOfOtherShardsAreHandledThoughOneIsAway(t *testing.T) {
	c := newCounted(t)
	var first []inspect.FirstPayload
	var dead []inspect.DeadLetterPayloads
	want := 0
	for n := range 20 {
		id := fmt.Sprint(n)
		c.push(id, "x@1", "x@2")
		first = append(first, inspect.FirstPayload{ID: id, Data: []byte("x")})
		dead = append(dead, inspect.DeadLetterPayloads{ID: id, Payloads: [][]byte{[]byte("x")}})
		want += core.ShardOf(id, 2)
	}

	i := inspect.New(everyAway{away0{c.store}}, inspect.Options{})
	var partial *inspect.PartialError
	if r, err := i.Bury(t.Context(), "counted", inspect.FirstPayloads(first...)); r.Handled != want ||
		!errors.As(err, &partial) {
		t.Errorf("BuryFirst: %d handled, %v; want %d of the shard that is there", r.Handled, err, want)
	}

	partial = nil
	if r, err := i.Revive(t.Context(), "counted", inspect.DeadPayloads(dead...)); r.Handled != want ||
		!errors.As(err, &partial) {
		t.Errorf("RevivePayloads: %d handled, %v; want %d of the shard that is there", r.Handled, err, want)
	}
}

// A look reads the record of the queue once, and only if a payload looks as if it had a stamp.
func TestLooksReadTheRuleOnlyForAStamp(t *testing.T) {
	for data, want := range map[string]int{"x": 0, string(everyRule.Stored(core.Payload{Data: []byte("x")}).Data): 1} {
		c := newCounted(t)
		read := 0
		store := storekit.Intercept(c.store, func(
			ctx context.Context, call storekit.Call, next func(context.Context) error,
		) error {
			if call.Method == "Queues" {
				read++
			}
			return next(ctx)
		})
		r := ports.PushRequest{Queue: "counted", Shards: 2, Generation: 1}
		for n := range 250 {
			r.Entries = append(r.Entries, core.Entry{ID: fmt.Sprint(n), Payload: core.Payload{Data: []byte(data)}})
		}
		if _, err := store.Push(t.Context(), r); err != nil {
			t.Fatal(err)
		}

		i := inspect.New(store, inspect.Options{})
		for what, look := range map[string]func(){
			"Jobs": func() {
				for range must(t, i.Jobs(t.Context(), "counted", inspect.ListOptions{Payloads: 1})) {
				}
			},
			"Find": func() {
				if _, err := i.Find(t.Context(), "counted", "1"); err != nil {
					t.Error(err)
				}
			},
			"Payloads": func() {
				for range must(t, i.Payloads(t.Context(), "counted", "1", inspect.PayloadOptions{})) {
				}
			},
		} {
			read = 0
			if look(); read != want {
				t.Errorf("%s of payloads %q read the record %d times, want %d", what, data, read, want)
			}
		}
	}
}
