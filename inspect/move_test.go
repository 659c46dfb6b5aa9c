package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// movedShards is the shard count of the queue "moved", to which the tests move.
const movedShards = 7

var movedTo = inspect.Target{Queue: "moved"}

// target declares a queue to move to, and pauses it.
func (s *fixture) target(rule core.MergeRule) {
	s.t.Helper()
	if _, err := s.store.Declare(s.t.Context(), ports.DeclareRequest{
		Queue:    "moved",
		Shards:   movedShards,
		IndexIDs: true,
		Merge:    rule,
	}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.store.Pause(s.t.Context(), "moved"); err != nil {
		s.t.Fatal(err)
	}
}

// contents returns everything that a queue has queued and dead, with every field, by id.
func contents(t testing.TB, store *memory.Store, queue string) map[string]string {
	t.Helper()
	all := map[string]string{}
	i := inspect.New(store, inspect.Options{})

	text := func(id string, place inspect.Place) string {
		var b strings.Builder
		for p := range must(t, i.Payloads(t.Context(), queue, id, inspect.PayloadOptions{Place: place})) {
			if len(p.Data) > 100 {
				p.Data = fmt.Appendf(nil, "%d bytes of %q", len(p.Data), p.Data[0])
			}
			fmt.Fprintf(&b, " %q@%v(%q)", p.Data, p.Score, p.Meta)
		}
		return b.String()
	}

	for j := range must(t, i.Jobs(t.Context(), queue, inspect.ListOptions{})) {
		all["queued "+j.ID] = fmt.Sprint(j.PerformAt, j.Retries, j.Recoveries, j.FirstPush, j.LastError, j.Tags,
			text(j.ID, inspect.PlaceQueued))
	}
	for d := range must(t, i.Morgue(t.Context(), queue, inspect.ListOptions{})) {
		all["dead "+d.ID] = fmt.Sprint(d.ChangedAt, d.LastError, d.Group, d.Tags, text(d.ID, inspect.PlaceDead))
	}
	return all
}

// bring puts jobs into a queue, in parts if they are large.
func bring(t testing.TB, store *memory.Store, queue string, shards int, jobs ...core.Job) {
	t.Helper()
	for _, j := range jobs {
		for rest := j.Payloads; len(rest) > 0; {
			var bound core.Bound
			part := j
			part.Payloads = rest[:bound.Take(rest)]
			rest = rest[len(part.Payloads):]

			_, err := store.Import(t.Context(), ports.ImportRequest{
				Shard:      core.Shard{Queue: queue, Index: core.ShardOf(j.ID, shards)},
				Shards:     shards,
				Generation: 1,
				Jobs:       []core.Job{part},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// oddJobs are jobs that a careless move loses something of.
func oddJobs() []core.Job {
	at := core.InstantOf(epoch)
	state := func(retry int) core.State {
		return core.State{PerformAt: at.Add(-time.Hour), RetryCount: retry, FirstPush: at - 77}
	}

	failed := core.State{
		PerformAt:  at.Add(time.Hour),
		RetryCount: 24,
		Recoveries: 3,
		FirstPush:  12345,
		Failures:   core.Failures{{Text: "é\n\"<\u2028"}, {At: 5, Node: "web-1"}, {Text: "older"}},
		Tags:       "B\x1fa, b\x1fé",
	}
	many := core.Job{ID: "many", State: failed}
	for n := range 2*core.MaxTurnPayloads + 500 {
		p := core.Payload{Data: fmt.Appendf(nil, "p%05d", n), Score: float64(n)}
		if n%100 == 7 {
			p.Meta = []byte("meta")
		}
		many.Payloads = append(many.Payloads, p)
	}

	jobs := []core.Job{
		many,
		{ID: "large", State: state(-1), Payloads: []core.Payload{
			{Data: bytes.Repeat([]byte("l"), 6<<20), Score: 1},
			{Data: bytes.Repeat([]byte("m"), 6<<20), Score: 2, Meta: []byte("last")},
		}},
		{ID: "odd", State: failed, Payloads: []core.Payload{
			{Data: []byte{}, Score: -math.MaxFloat64},
			{Data: []byte("\x00\xff"), Score: math.SmallestNonzeroFloat64, Meta: []byte("\xfe")},
			{Data: []byte("é"), Score: 1.7e9 + 1e-6},
		}},
	}

	for n, id := range numbered("j", 120) {
		s := state(n%4 - 1)
		if n%4 > 0 {
			s.Failures = core.Failures{{Text: "boom"}}
		}
		jobs = append(jobs, core.Job{ID: id, State: s, Payloads: []core.Payload{
			{Data: []byte("p"), Score: float64(n)},
			{Data: []byte("q"), Score: float64(n + 1)},
		}})
	}
	return jobs
}

// toMove fills the queue with jobs and dead letters, and returns what is to be moved.
func (s *fixture) toMove() (want map[string]string, jobs, letters int) {
	s.t.Helper()
	bring(s.t, s.store, "orders", fixtureShards, oddJobs()...)
	odd := oddLetters()
	odd = slices.DeleteFunc(odd, func(d core.DeadLetter) bool { return d.ChangedAt >= core.InstantOf(epoch) })
	if _, err := s.Import(s.t.Context(), "orders",
		sequence(append(odd, lettersOf(numbered("d", 120), 2)...), nil), nil); err != nil {
		s.t.Fatal(err)
	}
	want = contents(s.t, s.store, "orders")
	c := s.counts()
	return want, int(c.Length()), int(c.Dead)
}

// holdsAll compares what a queue holds.
func holdsAll(t testing.TB, store *memory.Store, queue string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, contents(t, store, queue)); diff != "" {
		t.Errorf("%s holds (-want +got):\n%.3000s", queue, diff)
	}
}

// everyMove are the moves of a whole queue: by match, of all, and by ids.
func everyMove(
	i *inspect.Inspector,
) map[string]func(context.Context, inspect.BulkOptions, inspect.BulkOptions) (jobs, letters inspect.Result, err error) {
	all := func(match bool) func(
		context.Context,
		inspect.BulkOptions,
		inspect.BulkOptions,
	) (jobs, letters inspect.Result, err error) {
		return func(ctx context.Context, o, dead inspect.BulkOptions) (jobs, letters inspect.Result, err error) {
			var anyJob func(inspect.QueuedJob) bool
			var any func(inspect.DeadLetter) bool
			if match {
				anyJob, any, o.Filter, dead.Filter = func(inspect.QueuedJob) bool {
					return true
				}, anyLetter, "any", "any"
			}

			if jobs, err = i.Move(ctx, "orders", movedTo, inspect.AllJobs(anyJob, o)); err != nil {
				return jobs, letters, err
			}
			letters, err = i.MoveMorgue(ctx, "orders", movedTo, inspect.AllDead(any, dead))
			return jobs, letters, err
		}
	}
	return map[string]func(
		context.Context,
		inspect.BulkOptions,
		inspect.BulkOptions,
	) (jobs, letters inspect.Result, err error){
		"all": all(false), "match": all(true),
	}
}

func TestAMoveKeepsEverything(t *testing.T) {
	for _, name := range []string{"all", "match"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.target(core.MergeRule{})
			want, jobs, letters := s.toMove()
			moved, dead, err := everyMove(s.Inspector)[name](t.Context(), inspect.BulkOptions{}, inspect.BulkOptions{})
			if err != nil || moved.Handled != jobs || moved.Done != jobs || moved.Gone != 0 ||
				dead.Handled != letters || dead.Gone != 0 {
				t.Errorf("%+v, %+v, %v; want %d jobs and %d dead letters", moved, dead, err, jobs, letters)
			}
			holdsAll(t, s.store, "orders", map[string]string{})
			holdsAll(t, s.store, "moved", want)
		})
	}

	t.Run("ids", func(t *testing.T) {
		s := newFixture(t)
		s.target(core.MergeRule{})
		want, jobs, letters := s.toMove()
		ids := []string{"never"}
		for name := range want {
			_, id, _ := strings.Cut(name, " ")
			ids = append(ids, id)
		}

		r, err := s.Move(t.Context(), "orders", movedTo, inspect.JobIDs(ids...))
		if err != nil || r.Handled != jobs+letters || r.Done != len(ids) {
			t.Errorf("%+v, %v; want %d", r, err, jobs+letters)
		}

		holdsAll(t, s.store, "orders", map[string]string{})
		holdsAll(t, s.store, "moved", want)
	})
}

// A move between two stores goes the same way, also to a queue of the same name.
func TestAMoveGoesIntoAnotherStore(t *testing.T) {
	s, other := newFixture(t), newFixture(t)
	want, _, _ := s.toMove()
	to, o := inspect.Target{Queue: "orders", Inspector: other.Inspector}, inspect.BulkOptions{}
	if _, err := s.Move(t.Context(), "orders", to, inspect.AllJobs(nil, o)); !errors.Is(err, inspect.ErrNotPaused) {
		t.Fatalf("a move into a queue that runs: %v", err)
	}

	if err := other.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	for _, move := range []func() (inspect.Result, error){
		func() (inspect.Result, error) { return s.Move(t.Context(), "orders", to, inspect.AllJobs(nil, o)) },
		func() (inspect.Result, error) {
			return s.MoveMorgue(t.Context(), "orders", to, inspect.AllDead(nil, o))
		},
	} {
		if r, err := move(); err != nil {
			t.Fatalf("%+v, %v", r, err)
		}
	}

	holdsAll(t, s.store, "orders", map[string]string{})
	holdsAll(t, other.store, "orders", want)
}

// A move to another store is in both audits, each with the name of the other store. The calls of a
// continued move are one action there too. A dry run is in no audit.
func TestAMoveToAnotherStoreIsInBothAudits(t *testing.T) {
	s, other := newFixture(t), newFixture(t)
	s.pushAll("a", "b", "c")
	if err := other.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	to := inspect.Target{Queue: "orders", Inspector: other.Inspector, Store: "prod", FromStore: "staging"}
	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann", Reason: "test"})
	for _, o := range []inspect.BulkOptions{{DryRun: true}, {Limit: 1}, {}} {
		r, err := s.Move(ctx, "orders", to, inspect.AllJobs(nil, o))
		if err != nil {
			t.Fatal(err)
		}
		if o.Limit == 1 {
			again := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann"}) // the reason is that of the first call
			if r, err = s.Move(again, "orders", to,
				inspect.AllJobs(nil, inspect.BulkOptions{Continue: r.Checkpoint})); err != nil || r.Handled != 3 {
				t.Fatalf("continued: %+v, %v", r, err)
			}
		}
	}

	for at, want := range map[*fixture][]string{
		s:     {"move all to orders in prod 0", "move all to orders in prod 3"},
		other: {"move all from orders in staging 0", "move all from orders in staging 3", "pause 0"},
	} {
		var got []string
		for a := range must(t, at.Actions(t.Context(), inspect.ActionsOptions{})) {
			got = append(got, fmt.Sprint(a.Verb, " ", a.Handled))
			if a.Verb != "pause" &&
				(!a.Ended || a.Queue != "orders" || a.Actor.Name != "ann" || a.Actor.Reason != "test") {
				t.Errorf("the audit has %+v", a)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the audit (-want +got):\n%s", diff)
		}
	}
}

// sameNameMoves are the moves of the queue orders to the queue of the same name.
func (s *fixture) sameNameMoves(into *inspect.Inspector) map[string]func() (inspect.Result, error) {
	to, ctx := inspect.Target{Queue: "orders", Inspector: into}, s.t.Context()
	return map[string]func() (inspect.Result, error){
		"Move": func() (inspect.Result, error) { return s.Move(ctx, "orders", to, inspect.JobIDs("odd")) },
		"MoveAll": func() (inspect.Result, error) {
			return s.Move(ctx, "orders", to, inspect.AllJobs(nil, inspect.BulkOptions{}))
		},
		"a dry run of MoveAll": func() (inspect.Result, error) {
			return s.Move(ctx, "orders", to, inspect.AllJobs(nil, inspect.BulkOptions{DryRun: true}))
		},
		"MoveMorgue": func() (inspect.Result, error) {
			return s.MoveMorgue(ctx, "orders", to, inspect.AllDead(nil, inspect.BulkOptions{}))
		},
	}
}

// A queue that is moved into itself would be deleted. It is recognized by the id of its store, even
// by another inspector of the same store, and however many other actions are in the audit.
func TestAMoveIntoItselfIsRefused(t *testing.T) {
	s := newFixture(t)
	want, _, _ := s.toMove()
	if err := s.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	busy := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		if call.Method == "Stats" || call.Method == "StoreID" {
			for n := range ports.ActionsKept {
				if err := s.store.Audit(ctx, ports.Action{
					ID:    fmt.Sprint("other-", n),
					Verb:  "run now",
					Queue: "other",
				}); err != nil {
					return err
				}
			}
		}
		return next(ctx)
	})

	for name, into := range map[string]*inspect.Inspector{
		"its own": s.Inspector,
		"none":    nil,
		"another": inspect.New(s.store, inspect.Options{}),
		"a busy":  inspect.New(busy, inspect.Options{}),
	} {
		for verb, move := range s.sameNameMoves(into) {
			if r, err := move(); !errors.Is(err, inspect.ErrInvalidOptions) || r.Handled != 0 {
				t.Errorf("%s with %s inspector: %+v, %v; want ErrInvalidOptions", verb, name, r, err)
			}
		}
	}

	holdsAll(t, s.store, "orders", want)
}

// A store that was restored from a dump has the id of the first one. So they can't be told apart
// from one store, until an operator draws a new id for one of them.
func TestAMoveToACopyNeedsANewID(t *testing.T) {
	s, other := newFixture(t), newFixture(t)
	want, _, _ := s.toMove()
	if err := other.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	id, err := s.StoreID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.store.SetStoreID(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for verb, move := range s.sameNameMoves(other.Inspector) {
		if r, err := move(); !errors.Is(err, inspect.ErrInvalidOptions) ||
			!strings.Contains(err.Error(), "skein repair identity") || r.Handled != 0 {
			t.Errorf("%s: %+v, %v; want ErrInvalidOptions that names the command", verb, r, err)
		}
	}
	holdsAll(t, s.store, "orders", want)

	drawn, err := other.RenewStoreID(inspect.WithActor(t.Context(), inspect.Actor{Name: "ann"}))
	if now, failed := other.StoreID(t.Context()); err != nil || failed != nil || drawn == id || now != drawn {
		t.Fatalf("drew %q, %v; the store has %q, %v, and had %q", drawn, err, now, failed, id)
	}
	for a := range must(t, other.Actions(t.Context(), inspect.ActionsOptions{})) {
		if a.Verb != "renew store id" || a.Queue != "" || a.Actor.Name != "ann" || !a.Ended {
			t.Errorf("the audit has %+v", a)
		}
		break
	}
	for verb, move := range s.sameNameMoves(other.Inspector) {
		if _, err := move(); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	holdsAll(t, s.store, "orders", map[string]string{})
	holdsAll(t, other.store, "orders", want)
}

// Without both ids it is unknown whether both queues are the same.
func TestAMoveNeedsBothIDs(t *testing.T) {
	s, other := newFixture(t), newFixture(t)
	s.push("odd", 0, "p")
	if err := other.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	without := func(reply func(*string) error) *inspect.Inspector {
		return inspect.New(storekit.Intercept(other.store, func(
			ctx context.Context,
			call storekit.Call,
			next func(context.Context) error,
		) error {
			if call.Method == "StoreID" {
				return reply(call.Reply.(*string))
			}
			return next(ctx)
		}), inspect.Options{})
	}

	for name, into := range map[string]*inspect.Inspector{
		"no id":   without(func(id *string) error { *id = ""; return nil }),
		"no word": without(func(*string) error { return ports.ErrUnusable }),
	} {
		for verb, move := range s.sameNameMoves(into) {
			if r, err := move(); !errors.Is(err, inspect.ErrInvalidOptions) && !errors.Is(err, inspect.ErrUnusable) ||
				r.Handled != 0 {
				t.Errorf("%s, %s: %+v, %v; want that it is refused", name, verb, r, err)
			}
		}
	}
	s.holds("queued odd at 0s retries 0 [p]")
}

func TestAMoveIntoARunningOrUnknownQueueIsRefused(t *testing.T) {
	s := newFixture(t)
	want, _, _ := s.toMove()
	s.declare("running", 2)

	for name, wanted := range map[string]error{"running": inspect.ErrNotPaused, "nowhere": inspect.ErrUnknownQueue} {
		to := inspect.Target{Queue: name}
		for verb, move := range map[string]func() (inspect.Result, error){
			"Move": func() (inspect.Result, error) {
				return s.Move(t.Context(), "orders", to, inspect.JobIDs("odd"))
			},
			"MoveAll": func() (inspect.Result, error) {
				return s.Move(t.Context(), "orders", to, inspect.AllJobs(nil, inspect.BulkOptions{}))
			},
			"MoveMorgue": func() (inspect.Result, error) {
				return s.MoveMorgue(t.Context(), "orders", to, inspect.AllDead(nil, inspect.BulkOptions{}))
			},
		} {
			if r, err := move(); !errors.Is(err, wanted) || r.Handled != 0 {
				t.Errorf("%s to %s: %+v, %v; want %v", verb, name, r, err, wanted)
			}
		}
	}

	if r, err := s.Move(t.Context(), "orders", inspect.Target{Queue: "running"},
		inspect.AllJobs(nil, inspect.BulkOptions{DryRun: true})); err != nil || r.Handled != 123 || len(r.Jobs) != 10 {
		t.Errorf("a dry run: %+v, %v", r, err)
	}
	holdsAll(t, s.store, "orders", want)
}

// A move is interrupted after each of its steps in turn, before a call or once it has taken effect,
// and called again: from its checkpoint, or anew. Nothing is lost or doubled, and each entry is
// counted once, but for those whose step's reply was lost.
func TestAMoveThatIsInterruptedAnywhereLosesAndDoublesNothing(t *testing.T) {
	for _, name := range []string{"all", "match"} {
		for _, lost := range []bool{false, true} {
			for _, anew := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", lost ", lost, ", anew ", anew), func(t *testing.T) {
					interruptions := 0
					for at := 1; ; at++ {
						if !interruptedMove(t, name, lost, anew, at) {
							break
						}
						interruptions++
					}
					if interruptions < 20 {
						t.Errorf("it was interrupted at %d steps only", interruptions)
					}
				})
			}
		}
	}
}

// interruptedMove moves a queue and ends at its nth step. It reports whether there was such a step.
func interruptedMove(t *testing.T, name string, lost, anew bool, nth int) (interrupted bool) {
	t.Helper()
	s := newFixture(t)
	s.target(core.MergeRule{})
	for n := range 9 {
		j := core.Job{
			ID: fmt.Sprint("j", n),
			State: core.State{
				PerformAt:  core.InstantOf(epoch),
				RetryCount: n - 1,
				FirstPush:  core.Instant(n),
				Failures:   core.Failures{{Text: "boom"}},
			},
		}
		for k := range 1 + n/8*core.MaxTurnPayloads { // the last one goes in two parts
			j.Payloads = append(j.Payloads, core.Payload{
				Data:  fmt.Append(nil, k),
				Score: float64(k),
				Meta:  []byte("m"),
			})
		}
		bring(t, s.store, "orders", fixtureShards, j)
	}
	s.imported([]string{"d0", "d1", "d2", "d3"}, 3)
	s.imported([]string{"d4"}, 17)
	want := contents(t, s.store, "orders")
	jobs, letters := int(s.counts().Length()), int(s.counts().Dead)

	h, steps := s.intercept(), 0
	end := func(method string) error {
		if slices.Contains([]string{"Import", "Delete", "Purge"}, method) {
			if steps++; steps == nth {
				return ports.ErrUnusable // it is not repeated
			}
		}
		return nil
	}
	if lost {
		h.after = end
	} else {
		h.before = end
	}
	first, dead, err := everyMove(s.Inspector)[name](t.Context(), inspect.BulkOptions{}, inspect.BulkOptions{})
	if interrupted = err != nil; interrupted && !errors.Is(err, ports.ErrUnusable) {
		t.Fatalf("step %d: %v", nth, err)
	}
	handled := first.Handled + dead.Handled
	if interrupted {
		left, moved := contents(t, s.store, "orders"), contents(t, s.store, "moved")
		for what := range want {
			if _, there := left[what]; !there && moved[what] != want[what] {
				t.Errorf("step %d: %s is neither at the source nor whole at the target", nth, what)
			}
		}
		o, od := inspect.BulkOptions{}, inspect.BulkOptions{}
		if !anew {
			o.Continue, od.Continue = first.Checkpoint, dead.Checkpoint
		}
		again, deadAgain, err := everyMove(s.Inspector)[name](t.Context(), o, od)
		if err != nil {
			t.Fatalf("step %d, again: %v", nth, err)
		}
		handled += again.Handled - again.Earlier + deadAgain.Handled - deadAgain.Earlier
	}
	if all := jobs + letters; handled > all || !lost && handled < all {
		t.Errorf("step %d: %d were counted, want %d", nth, handled, all)
	}
	holdsAll(t, s.store, "orders", map[string]string{})
	holdsAll(t, s.store, "moved", want)
	return interrupted
}

// Payloads that are pushed to the source between copying and deleting stay there for another call,
// unless they merge with a payload that moves.
func TestAMoveLeavesWhatIsPushedMeanwhile(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	s.push("a", 0, "p", "q", "r")
	entry := func(id, data string, score float64) core.Entry {
		return core.Entry{ID: id, Payload: core.Payload{Data: []byte(data), Score: score}}
	}
	plain, h := s.Inspector, s.intercept()

	once := true
	h.before = func(method string) error {
		if method == "Delete" && once {
			once = false
			s.pushEntries([]core.Entry{
				entry("a", "p", -1),
				entry("a", "q", 9),
				entry("a", "new", 5),
				entry("b", "p", 1),
			})
		}
		return nil
	}

	if r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil ||
		r.Handled != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	s.holds("queued a at 0s retries 0 [p new]", "queued b at 0s retries 0 [p]")

	s.advance(time.Second)
	if r, err := plain.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil ||
		r.Handled != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	s.holds()

	found, err := plain.Find(t.Context(), "moved", "a")
	if err != nil {
		t.Fatal(err)
	}
	want := []core.Payload{
		{Data: []byte("p"), Score: -1},
		{Data: []byte("q"), Score: 1},
		{Data: []byte("r"), Score: 2},
		{Data: []byte("new"), Score: 5},
	}
	if diff := cmp.Diff(want, found.Queued.Payloads); diff != "" {
		t.Errorf("the payloads at the target (-want +got):\n%s", diff)
	}
}

// A dead letter that is buried again between copying and deleting stays as it is.
func TestAMoveLeavesWhatIsBuriedMeanwhile(t *testing.T) {
	for _, name := range []string{"all", "ids"} {
		s := newFixture(t)
		s.target(core.MergeRule{})
		s.dead("a")

		h, once := s.intercept(), true
		h.before = func(method string) error {
			if method == "Purge" && once {
				once = false
				s.advance(time.Second)
				s.dead("a")
			}
			return nil
		}

		r, err := s.MoveMorgue(t.Context(), "orders", movedTo, inspect.AllDead(nil, inspect.BulkOptions{DryRun: true}))
		if err != nil || r.Handled != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if name == "all" {
			r, err = s.MoveMorgue(t.Context(), "orders", movedTo, inspect.AllDead(nil, inspect.BulkOptions{}))
		} else {
			r, err = s.Move(t.Context(), "orders", movedTo, inspect.JobIDs("a"))
		}
		if err != nil || r.Handled != 0 {
			t.Errorf("%s: %+v, %v; want that none is counted", name, r, err)
		}

		s.holds("dead a at 1s [p] hopeless")
		want := contents(t, s.store, "orders")
		s.advance(time.Second)
		if r, err = s.MoveMorgue(t.Context(), "orders", movedTo,
			inspect.AllDead(nil, inspect.BulkOptions{})); err != nil || r.Handled != 1 {
			t.Errorf("%s, again: %+v, %v", name, r, err)
		}
		s.holds()
		holdsAll(t, s.store, "moved", want)
	}
}

func TestAMoveLeavesClaimedJobs(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	s.push("a", 0, "p")
	s.claim()
	s.push("a", 0, "q")
	if r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil ||
		r.Handled != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	s.holds("claimed a [p]")
	if r, err := s.Move(t.Context(), "orders", movedTo, inspect.JobIDs("a")); err != nil || r.Handled != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	s.holds("claimed a [p]")
}

// Payloads merge at the target by its own rule, and of two states that with more failures stays.
func TestAMoveMergesAtTheTarget(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{Stays: core.Highest, Keep: 2})
	at := core.InstantOf(epoch)
	payload := func(data string, score float64) core.Payload { return core.Payload{Data: []byte(data), Score: score} }

	bring(t, s.store, "moved", movedShards, core.Job{
		ID:       "a",
		State:    core.State{PerformAt: at, RetryCount: 1, FirstPush: at, Failures: core.Failures{{Text: "there"}}},
		Payloads: []core.Payload{payload("p", 2), payload("q", 3)},
	})
	bring(t, s.store, "orders", fixtureShards, core.Job{
		ID:       "a",
		State:    core.State{PerformAt: at + 5, RetryCount: 2, FirstPush: at - 1, Failures: core.Failures{{Text: "coming"}}},
		Payloads: []core.Payload{payload("o", 1), payload("p", 4)},
	})
	if r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil ||
		r.Handled != 1 {
		t.Fatalf("%+v, %v", r, err)
	}

	found, err := s.Find(t.Context(), "moved", "a")
	if err != nil {
		t.Fatal(err)
	}

	j := found.Queued
	if diff := cmp.Diff([]core.Payload{payload("q", 3), payload("p", 4)}, j.Payloads); diff != "" || j.Retries != 3 ||
		j.LastError != "coming" || !j.FirstPush.Equal((at - 1).Time()) {
		t.Errorf("%+v\n%s", j, diff)
	}

	stats, err := s.Stats(t.Context(), "moved")
	if err != nil || stats[0].Superseded != 1 {
		t.Errorf("%d superseded, %v; want 1", stats[0].Superseded, err)
	}
}

func TestAMoveTakesWhatMatches(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	s.failed("a1", "a2", "b1")
	s.pushAll("a3", "b2")

	failing := func(j inspect.QueuedJob) bool { return j.Retries > 0 }
	if r, err := s.Move(t.Context(), "orders", movedTo,
		inspect.AllJobs(failing, inspect.BulkOptions{Prefix: "a", Filter: "failing"})); err != nil || r.Handled != 2 {
		t.Errorf("%+v, %v; want the two that fail", r, err)
	}
	s.holds("queued a3 at 0s retries 0 [p]", "queued b2 at 0s retries 0 [p]", "queued b1 at 1h0m0s retries 1 [p] boom")

	first, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{Limit: 1}))
	if err != nil || first.Handled != 1 || first.Checkpoint == "" {
		t.Fatalf("%+v, %v", first, err)
	}

	s.declare("elsewhere", 1)
	if err := s.Pause(t.Context(), "elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Move(t.Context(), "orders", inspect.Target{Queue: "elsewhere"},
		inspect.AllJobs(nil,
			inspect.BulkOptions{Continue: first.Checkpoint})); !errors.Is(err, inspect.ErrInvalidCheckpoint) {
		t.Errorf("continued to another target: %v", err)
	}

	if r, err := s.Move(t.Context(), "orders", movedTo,
		inspect.AllJobs(nil, inspect.BulkOptions{Continue: first.Checkpoint})); err != nil || r.Handled != 3 ||
		r.Gone != 0 {
		t.Errorf("%+v, %v; want all three", r, err)
	}
	s.holds()
	for a := range must(t, s.Actions(t.Context(), inspect.ActionsOptions{Queue: "orders"})) {
		if !strings.HasPrefix(a.Verb, "move all to ") {
			t.Errorf("the audit has %+v", a)
		}
	}
}

// An operator who resumes the target after the move has seen it paused keeps it running: a move
// never pauses its target, and ends.
func TestAMoveNeverPausesItsTarget(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	s.push("a", 0, "p")
	s.intercept().after = func(method string) error {
		switch method {
		case "Pause":
			t.Error("the target was paused")
		case "Stats":
			return s.store.Resume(t.Context(), "moved")
		}
		return nil
	}

	if r, err := s.Move(t.Context(), "orders", movedTo,
		inspect.AllJobs(nil, inspect.BulkOptions{})); !errors.Is(err, inspect.ErrNotPaused) || r.Handled != 0 {
		t.Errorf("%+v, %v; want ErrNotPaused", r, err)
	}
}

// While moves are interrupted and begun again, clients push to both queues and a server runs the
// source. After each call of the store, every payload that was pushed since it last ran is in one
// of the queues, with the smallest score of these pushes or a smaller one.
func TestAMoveLosesNoPushWhileItsSourceRuns(t *testing.T) {
	for seed := range uint64(100) {
		m := &movedWhileRunning{
			fixture: newFixture(t),
			rand:    rand.New(rand.NewPCG(seed, 1)),
			pending: map[string]float64{},
		}
		m.target(core.MergeRule{})
		m.plain = m.Inspector
		h := m.intercept()
		h.before = func(method string) error {
			m.meanwhile()
			return m.check("before " + method)
		}
		h.after = func(method string) error { return m.check("after " + method) }

		for range 6 {
			m.meanwhile()
			if m.rand.IntN(2) == 0 {
				_, _ = m.Move(t.Context(), "orders", movedTo, inspect.JobIDs("id0", "id1", "id2", "id3"))
			} else {
				_, _ = m.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{}))
			}
			m.advance(time.Second)
		}
		if m.lost != "" {
			t.Fatalf("seed %d: %s", seed, m.lost)
		}
	}
}

// movedWhileRunning is a queue that is moved while clients push to both queues and a server runs
// it.
type movedWhileRunning struct {
	*fixture
	plain *inspect.Inspector
	rand  *rand.Rand
	// pending has the smallest score of the pushes, by id and data, since the payload last ran.
	pending map[string]float64
	// lost is the first payload that was found lost.
	lost string
}

// meanwhile pushes something, or lets the server of the source work, or does nothing.
func (m *movedWhileRunning) meanwhile() {
	switch m.rand.IntN(6) {
	case 0, 1:
		m.pushTo("orders", fixtureShards)
	case 2:
		m.pushTo("moved", movedShards)
	case 3:
		claims := m.claim()
		for _, c := range claims {
			for _, p := range c.Payloads {
				delete(m.pending, c.ID+" "+string(p.Data))
			}
		}
		m.settle(claims, core.Outcome{Kind: core.Done})
	case 4:
		m.settle(m.claim(), core.Outcome{Kind: core.Failed, Error: "boom"})
	}
}

func (m *movedWhileRunning) pushTo(queue string, shards int) {
	id, data, score := fmt.Sprint("id", m.rand.IntN(4)), string("pq"[m.rand.IntN(2)]), float64(m.rand.IntN(4))
	entry := core.Entry{
		ID:      id,
		Payload: core.Payload{Data: []byte(data), Score: score},
		When:    core.At(core.InstantOf(epoch)),
	}
	r := ports.PushRequest{Queue: queue, Shards: shards, Generation: 1, Entries: []core.Entry{entry}}
	if _, err := m.store.Push(m.t.Context(), r); err != nil {
		m.t.Error(err)
	}
	if least, there := m.pending[id+" "+data]; !there || score < least {
		m.pending[id+" "+data] = score
	}
}

// check finds out whether each pending payload is in one of the queues. It interrupts one call in
// ten.
func (m *movedWhileRunning) check(when string) error {
	found := map[string]float64{}
	for _, queue := range []string{"orders", "moved"} {
		for j := range must(m.t, m.plain.Jobs(m.t.Context(), queue, inspect.ListOptions{Payloads: 10})) {
			for _, p := range j.Payloads {
				key := j.ID + " " + string(p.Data)
				if least, there := found[key]; !there || p.Score < least {
					found[key] = p.Score
				}
			}
		}
	}

	for key, score := range m.pending {
		if got, there := found[key]; m.lost == "" && (!there || got > score) {
			m.lost = fmt.Sprintf("%s, %q@%v is lost; found %v, %v", when, key, score, got, there)
		}
	}

	if m.rand.IntN(10) == 0 {
		return ports.ErrUnusable
	}
	return nil
}

// A copy that ran before its original is deleted could miss a push, so the store itself refuses to
// import into a target that somebody has resumed.
func TestAMoveEndsOnceItsTargetIsResumed(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	want, _, _ := s.toMove()

	plain, h := s.Inspector, s.intercept()
	for verb, move := range map[string]func() (inspect.Result, error){
		"Move": func() (inspect.Result, error) { return s.Move(t.Context(), "orders", movedTo, inspect.JobIDs("odd")) },
		"MoveAll": func() (inspect.Result, error) {
			return s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{}))
		},
		"MoveMorgue": func() (inspect.Result, error) {
			return s.MoveMorgue(t.Context(), "orders", movedTo, inspect.AllDead(nil, inspect.BulkOptions{}))
		},
	} {
		if err := plain.Pause(t.Context(), "moved"); err != nil {
			t.Fatal(err)
		}
		imports := 0
		h.before = func(method string) error {
			if method == "Import" {
				imports++
				return s.store.Resume(t.Context(), "moved")
			}
			return nil
		}

		if r, err := move(); !errors.Is(err, inspect.ErrNotPaused) || r.Handled != 0 || imports != 1 {
			t.Errorf("%s: %+v, %v, %d imports; want ErrNotPaused by the first", verb, r, err, imports)
		}
	}

	holdsAll(t, s.store, "orders", want)
	holdsAll(t, s.store, "moved", map[string]string{})
}

// A step takes what fits into it, also of entries that don't come whole with their page: 28 of 35
// payloads each.
func TestAMoveFillsItsSteps(t *testing.T) {
	const entries, payloads = 200, 35
	s := newFixture(t)
	for _, queue := range []string{"from", "to"} {
		s.declare(queue, 1)
		if err := s.Pause(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
	}
	var jobs []core.Job
	for n, id := range numbered("j", entries) {
		j := core.Job{
			ID:    id,
			State: core.State{PerformAt: core.InstantOf(epoch), RetryCount: -1, FirstPush: core.Instant(n)},
		}
		for k := range payloads {
			j.Payloads = append(j.Payloads, core.Payload{Data: fmt.Append(nil, k), Score: float64(k)})
		}
		jobs = append(jobs, j)
	}
	bring(t, s.store, "from", 1, jobs...)
	if _, err := s.Import(t.Context(), "from",
		sequence(lettersOf(numbered("d", entries), payloads), nil), nil); err != nil {
		t.Fatal(err)
	}
	want := contents(t, s.store, "from")

	calls := map[string]int{}
	s.intercept().before = func(method string) error { calls[method]++; return nil }
	for _, name := range []string{"jobs", "dead letters"} {
		clear(calls)
		to, o := inspect.Target{Queue: "to"}, inspect.BulkOptions{Payloads: -1}
		move := func() (inspect.Result, error) { return s.Move(t.Context(), "from", to, inspect.AllJobs(nil, o)) }
		if name == "dead letters" {
			move = func() (inspect.Result, error) {
				return s.MoveMorgue(t.Context(), "from", to, inspect.AllDead(nil, o))
			}
		}
		if r, err := move(); err != nil || r.Handled != entries {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if copies, deletions := calls["Import"], calls["Delete"]+calls["Purge"]; copies != 8 || deletions != 8 ||
			calls["Find"] > entries {
			t.Errorf("%s: %d copies, %d deletions, %d reads of one id; want 4 steps for each page of 100",
				name, copies, deletions, calls["Find"])
		}
	}
	holdsAll(t, s.store, "from", map[string]string{})
	holdsAll(t, s.store, "to", want)
}

// Some stores read what they count. Of a job that does not come whole with its page, a move needs
// no more than that.
func TestAMoveCountsNoMoreThanItReads(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	want, jobs, _ := s.toMove()
	var counts []int
	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		if r, ok := call.Request.(*ports.JobsRequest); ok {
			counts = append(counts, r.MaxCount-r.Payloads)
		}
		return next(ctx)
	})

	r, err := inspect.New(store, inspect.Options{}).Move(t.Context(), "orders", movedTo,
		inspect.AllJobs(nil, inspect.BulkOptions{}))
	if err != nil || r.Handled != jobs || len(counts) == 0 || slices.Max(counts) != 1 || slices.Min(counts) != 1 {
		t.Errorf("%+v, %v, counted %v more than were read; want 1", r, err, counts)
	}
	maps.DeleteFunc(want, func(what, _ string) bool { return strings.HasPrefix(what, "dead ") })
	holdsAll(t, s.store, "moved", want)
}

// An id whose record can't be read is not taken for one that has nothing to move.
func TestAMoveOfADamagedRecordIsAnError(t *testing.T) {
	for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceDead} {
		s := newFixture(t)
		s.target(core.MergeRule{})
		s.push("a", 0, "p")
		damaged := storekit.Intercept(s.store, func(
			ctx context.Context,
			call storekit.Call,
			next func(context.Context) error,
		) error {
			err := next(ctx)
			if found, ok := call.Reply.(*ports.Found); ok {
				*found = ports.Found{Shard: found.Shard, Damaged: []ports.Place{place}}
			}
			return err
		})

		_, err := inspect.New(damaged, inspect.Options{}).Move(t.Context(), "orders", movedTo, inspect.JobIDs("a"))
		if err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), place.String()) {
			t.Errorf("%v is damaged: %v; want an error that names the id and the place", place, err)
		}
	}
}

// A store whose audit can't be written is recognized too.
func TestAMoveIntoItselfIsRefusedWithoutAnAudit(t *testing.T) {
	s := newFixture(t)
	want, _, _ := s.toMove()
	if err := s.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		switch call.Method {
		case "Audit":
			return errors.New("the audit is broken")
		case "Import", "Delete", "Purge":
			t.Errorf("%s was called", call.Method)
		}
		return next(ctx)
	})

	from, to, o := inspect.New(store, inspect.Options{}), inspect.Target{
		Queue:     "orders",
		Inspector: inspect.New(s.store, inspect.Options{}),
	}, inspect.BulkOptions{}
	for verb, move := range map[string]func() (inspect.Result, error){
		"Move": func() (inspect.Result, error) {
			return from.Move(t.Context(), "orders", to, inspect.JobIDs("odd"))
		},
		"MoveAll": func() (inspect.Result, error) {
			return from.Move(t.Context(), "orders", to, inspect.AllJobs(nil, o))
		},
		"MoveMorgue": func() (inspect.Result, error) {
			return from.MoveMorgue(t.Context(), "orders", to, inspect.AllDead(nil, o))
		},
	} {
		if r, err := move(); !errors.Is(err, inspect.ErrInvalidOptions) || r.Handled != 0 {
			t.Errorf("%s: %+v, %v; want ErrInvalidOptions", verb, r, err)
		}
	}
	holdsAll(t, s.store, "orders", want)
}

// A job that is done and pushed anew between its copy and its deletion is another job, which stays.
func TestAMoveLeavesAJobThatIsPushedAnewMeanwhile(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	s.push("a", 0, "p")
	h, once := s.intercept(), true

	h.before = func(method string) error {
		if method == "Delete" && once {
			once = false
			s.settle(s.claim(), core.Outcome{Kind: core.Done})
			s.advance(time.Second)
			s.push("a", 0, "p")
		}
		return nil
	}

	if r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil ||
		r.Handled != 0 || r.Gone != 1 {
		t.Errorf("%+v, %v; want that the job is gone", r, err)
	}
	s.holds("queued a at 1s retries 0 [p]")
}
