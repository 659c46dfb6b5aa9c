package redis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// scriptCalls returns calls that run every script of the store, and those that change jobs in
// several ways.
func scriptCalls() []scriptCall {
	var all []scriptCall
	for _, some := range [][]scriptCall{
		queueCalls(), nodeCalls(), pushCalls(), leaseCalls(), turnCalls(), stepCalls(), deadLetterCalls(),
		damageCalls(), calendarCalls(), readCalls(),
	} {
		all = append(all, some...)
	}
	return all
}

// A script that no call runs would be tested by none of these tests. No single call runs
// push_together: it takes pushes that wait at the same time, as in pushtogether_test.go.
func TestRedisCallsReachEveryScript(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, call := range scriptCalls() {
		used[call.script] = true
	}
	files, err := filepath.Glob("../../../adapters/redis/lua/*/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d scripts: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		if strings.HasPrefix(string(text), "#!") && !used[name] && name != "push_together" {
			t.Errorf("no call runs the script %s", name)
		}
	}
}

func queueCalls() []scriptCall {
	return []scriptCall{
		{"declare", "declare", false, func(w *worker) error { return w.declare("other") }},
		{"declare all shards", "declared", false, func(w *worker) error { return w.declare("other") }},
		{"declare again", "declare_shard", true, func(w *worker) error { return w.declare("orders") }},
		{"change the merge rule", "alter", true, setMerge},
		{"change the merge rule of a shard", "alter_shard", true, setMerge},
		{"change the settings", "configure", false, func(w *worker) error {
			return w.store.Configure(w.t.Context(), lanesSet(1, "3"))
		}},
		{"pause", "alter", true, func(w *worker) error { return w.store.Pause(w.t.Context(), "orders") }},
		{"pause a shard", "alter_shard", true, func(w *worker) error { return w.store.Pause(w.t.Context(), "orders") }},
		{"resume a shard", "alter_shard", true, func(w *worker) error { return w.store.Resume(w.t.Context(), "orders") }},
		{"forget", "forget", false, func(w *worker) error { return w.store.Forget(w.t.Context(), "other") }},
		{"forget a shard", "forget_shard", false, func(w *worker) error { return w.store.Forget(w.t.Context(), "other") }},
	}
}

// damageCalls are calls on a shard with records that can't be read: the queued b, the claimed a,
// the dead letter dead.
func damageCalls() []scriptCall {
	return []scriptCall{
		{"set aside a job", "set_aside", true, func(w *worker) error { return w.bury("b") }},
		{"set aside a claim", "set_aside", true, func(w *worker) error { return w.acquire("other", 1) }},
		{"set aside a cancel", "set_aside", true, func(w *worker) error { return w.acquire("other", 1) }},
		{"set aside a dead letter", "set_aside", true, func(w *worker) error { return w.purge(w.dead("dead")) }},
		{"set aside what has lost its record", "set_aside", true, func(w *worker) error { return w.purge(w.group()) }},
		{"set aside what has lost its payloads", "set_aside", true, func(w *worker) error { return w.bury("whole") }},
		{"beside others, set aside what has lost its record", "set_aside", true, func(w *worker) error { return w.purge(w.group()) }},
		{"beside others, set aside the record of many payloads", "set_aside", true, func(w *worker) error { return w.bury("whole") }},
		{"list a job anew", "set_aside", true, func(w *worker) error { return w.bury("plain") }},
		{"list a dead letter anew", "set_aside", true, func(w *worker) error { return w.purge(w.dead("dead")) }},
		{"list what is set aside", "set_aside_list", true, func(w *worker) error {
			_, err := w.store.Quarantined(w.t.Context(), ports.QuarantineRequest{Shard: w.shard})
			return err
		}},
		{"discard", "discard", true, func(w *worker) error {
			_, err := w.store.Discard(w.t.Context(), ports.DiscardRequest{
				Shard: w.shard, Keys: []string{"1700000000000000qb", "1700000000000000qwhole", "never"},
			})
			return err
		}},
	}
}

func nodeCalls() []scriptCall {
	return []scriptCall{
		{"record", "record", false, func(w *worker) error { return w.recorded(1, 0, 9, 20) }},
		{"record more", "record", true, func(w *worker) error { return w.recorded(2, 0, 1, 2, 20) }},
		{"record what is known", "record", true, func(w *worker) error { return w.recorded(1, 1, 2) }},
		{"announce", "announce", true, func(w *worker) error { return w.announce(1) }},
		{"announce a known node", "announce", true, func(w *worker) error { return w.announce(1) }},
		{"drain a known node", "drain", true, func(w *worker) error { return w.store.DrainNode(w.t.Context(), "n", true) }},
		{"retire a known node", "retire", true, func(w *worker) error { return w.store.Retire(w.t.Context(), "n") }},
		{"audit", "audit", true, func(w *worker) error { return w.audited("begun") }},
		{"audit an action that has ended", "audit", true, func(w *worker) error { return w.audited("known") }},
		{"list actions", "actions", true, func(w *worker) error {
			_, err := w.store.Actions(w.t.Context(), ports.ActionsRequest{})
			return err
		}},
		{"replace the store's id", "identify", false, func(w *worker) error { return w.store.SetStoreID(w.t.Context(), "other") }},
		{"track an id", "track", true, func(w *worker) error {
			_, err := w.store.Track(w.t.Context(), ports.TrackRequest{Queue: "orders", ID: "a"})
			return err
		}},
		{"list tracked ids", "tracked", true, func(w *worker) error { _, err := w.store.Tracked(w.t.Context(), "orders"); return err }},
		{"list a known node", "nodes", true, func(w *worker) error { _, err := w.store.Nodes(w.t.Context()); return err }},
	}
}

func pushCalls() []scriptCall {
	push := func(name string, filled bool, entries ...core.Entry) scriptCall {
		return scriptCall{"push " + name, "push", filled, func(w *worker) error { return w.push(entries...) }}
	}
	later := one("later", 1)
	later.When = core.In(time.Hour)
	urgent := one("urgent", 1)
	urgent.When = core.Urgent(time.Hour)
	return []scriptCall{
		push("one new", false, one("c", 1)),
		push("one new beside all", true, one("c", 1)),
		push("some new", false, one("c", 1), one("d", 1)),
		push("some new beside all", true, one("c", 1), one("d", 1)),
		push("later", true, later),
		push("an urgent one", true, urgent),
		push("onto a claimed job", false, one("a", 2)),
		push("onto a claimed job beside all", true, one("b", 2)),
		push("some, one onto a claimed job", true, one("c", 1), one("b", 2)),
		push("onto a queued job", true, one("plain", 2)),
		push("onto a failed job", true, one("failed", 2)),
		push("onto a large job", true, one("large", 2), one("large", -1)),
		push("with Meta onto a large job", true, many("large", 21)[20], many("large", 1)[0]),
		push("a large job", false, many("new", 20)...),
		push("a large job beside all", true, many("new", 20)...),
		push("until a job is large", true, many("plain", 20)...),
	}
}

func leaseCalls() []scriptCall {
	return []scriptCall{
		{"acquire again", "acquire", true, func(w *worker) error { return w.acquire("test", 1) }},
		{"acquire anew", "acquire", false, func(w *worker) error { return w.acquire("test", 2) }},
		{"acquire anew with all", "acquire", true, func(w *worker) error { return w.acquire("test", 2) }},
		{"renew", "renew", true, func(w *worker) error {
			_, err := w.store.Renew(w.t.Context(), ports.RenewRequest{Lease: w.lease, TTL: time.Hour})
			return err
		}},
		{"permit", "permit", true, func(w *worker) error { return w.permit("n", 2) }},
		{"permit fewer", "permit", false, func(w *worker) error { return w.permit("held", 1) }},
		{"permit with all given back", "permit", false, func(w *worker) error { return w.permit("held", 0) }},
		{"take grants", "take", true, func(w *worker) error { return w.take("", "new", "taken") }},
		{"take grants anew", "take", false, func(w *worker) error { return w.take("", "new") }},
		{"stop a limiter", "stop", true, func(w *worker) error { return w.stop("new") }},
		{"stop a limiter again", "stop", false, func(w *worker) error { return w.stop("stopped") }},
		{"list limiters", "limits", true, func(w *worker) error {
			_, err := w.store.Limits(w.t.Context(), ports.LimitsRequest{Queue: "orders"})
			return err
		}},
		{"release", "release", true, func(w *worker) error { return w.store.Release(w.t.Context(), w.lease) }},
	}
}

func turnCalls() []scriptCall {
	turn := func(name string, filled bool, request func(w *worker) ports.TurnRequest) scriptCall {
		return scriptCall{"turn that " + name, "turn", filled, func(w *worker) error { return w.turn(request(w)) }}
	}
	both := func(name string, request func(w *worker) ports.TurnRequest) []scriptCall {
		return []scriptCall{turn(name, false, request), turn(name+" beside all", true, request)}
	}
	settling := func(id string, want int, o core.Outcome) func(w *worker) ports.TurnRequest {
		return func(w *worker) ports.TurnRequest { return ports.TurnRequest{Want: want, Settlements: w.settle(id, o)} }
	}
	var all []scriptCall
	all = append(all, both("claims", func(*worker) ports.TurnRequest { return ports.TurnRequest{Want: 10} })...)
	all = append(all, both("looks", func(*worker) ports.TurnRequest { return ports.TurnRequest{} })...)
	for _, o := range []core.Outcome{
		{Kind: core.Done},
		{Kind: core.Untouched},
		failure(),
		{Kind: core.Buried, Error: "bad"},
		{Kind: core.Snoozed, Delay: time.Hour},
	} {
		all = append(all, both("settles as "+o.Kind.String(), settling("a", 0, o))...)
		all = append(all, both("settles as "+o.Kind.String()+" and claims", settling("a", 10, o))...)
	}
	all = append(all, both("records a job", func(w *worker) ports.TurnRequest {
		return ports.TurnRequest{Want: 1, Settlements: w.done("a", ""), Keep: core.KeepPast{Age: time.Hour}}
	})...)
	all = append(all, both("records a result", func(w *worker) ports.TurnRequest {
		return ports.TurnRequest{Settlements: w.done("a", "result"), Keep: core.KeepPast{Age: time.Hour}}
	})...)
	return append(all,
		turn("records a large result", true, func(w *worker) ports.TurnRequest {
			return ports.TurnRequest{
				Settlements: append(w.done("a", strings.Repeat("r", core.MaxResultBytes)), w.done("b", "r")...),
				Keep:        core.KeepPast{Age: time.Hour},
			}
		}),
		turn("records one job and removes the others", true, func(w *worker) ports.TurnRequest {
			return ports.TurnRequest{
				Settlements: append(w.settle("dead", failure()), w.done("a", "result")...),
				Keep:        core.KeepPast{Age: time.Hour, Count: 1},
			}
		}),
		turn("begins a job", false, func(w *worker) ports.TurnRequest { return w.beginning("a") }),
		turn("begins jobs beside all", true, func(w *worker) ports.TurnRequest {
			r := w.beginning("a", "cut", "never")
			r.Want, r.Settlements = 1, w.settle("b", core.Outcome{Kind: core.Done})
			return r
		}),
		turn("is resent", false, func(*worker) ports.TurnRequest { return ports.TurnRequest{Resent: true, Want: 1} }),
		turn("settles what is cancelled", true, settling("b", 10, core.Outcome{Kind: core.Dropped})),
		turn("settles a part of a job", true, settling("cut", 10, core.Outcome{Kind: core.Done})),
		turn("buries what is dead", true, settling("dead", 0, core.Outcome{Kind: core.Buried, Error: "bad"})),
		turn("buries in other groups", true, func(w *worker) ports.TurnRequest {
			r := ports.TurnRequest{
				Settlements: w.settle("dead", core.Outcome{Kind: core.Buried, Error: "bad", Group: "new"}),
			}
			r.Settlements = append(r.Settlements, w.settle("a", core.Outcome{
				Kind: core.Buried, Error: "bad", Group: core.BuriedByHand,
			})...)
			return r
		}),
		turn("settles all and claims another", true, func(w *worker) ports.TurnRequest {
			r := ports.TurnRequest{Want: 1, Settlements: w.settle("b", core.Outcome{Kind: core.Done})}
			for _, id := range []string{"a", "cut", "dead"} {
				r.Settlements = append(r.Settlements, w.settle(id, failure())...)
			}
			return r
		}),
		turn("puts back a part of a job", true, settling("cut", 0, failure())),
		turn("cuts a job", true, func(*worker) ports.TurnRequest { return ports.TurnRequest{Want: 10, PerJob: 2} }),
		scriptCall{"turn again", "turn", true, func(w *worker) error {
			w.number--
			return w.turn(ports.TurnRequest{})
		}},
	)
}

func stepCalls() []scriptCall {
	step := func(name, script string, do func(w *worker) (ports.StepReply, error)) scriptCall {
		return scriptCall{name, script, true, func(w *worker) error { _, err := do(w); return err }}
	}
	all := []string{"plain", "failed", "large", "a", "cut", "whole"}
	return []scriptCall{
		step("expedite some", "expedite", func(w *worker) (ports.StepReply, error) {
			return w.store.Expedite(w.t.Context(), w.step(all...))
		}),
		step("expedite all", "expedite", func(w *worker) (ports.StepReply, error) {
			return w.store.Expedite(w.t.Context(), w.step())
		}),
		step("bury some", "bury", func(w *worker) (ports.StepReply, error) {
			return w.store.Bury(w.t.Context(), w.step(all...))
		}),
		step("bury failed", "bury", func(w *worker) (ports.StepReply, error) {
			return w.store.Bury(w.t.Context(), w.step())
		}),
		step("delete some", "delete", func(w *worker) (ports.StepReply, error) {
			return w.store.Delete(w.t.Context(), w.step(all...))
		}),
		step("delete payloads", "delete_payloads", func(w *worker) (ports.StepReply, error) {
			s := w.step("plain", "large", "whole")
			s.Payloads = [][]core.Payload{
				{{Data: []byte("p0"), Score: 0}}, {{Data: []byte("p3"), Score: 3}, {Data: []byte("p4"), Score: 4}}, {},
			}
			return w.store.Delete(w.t.Context(), s)
		}),
		step("edit a queued job", "edit_queued", func(w *worker) (ports.StepReply, error) {
			return w.store.Edit(w.t.Context(),
				ports.EditRequest{Shard: w.shard, ID: "large", Queued: true, Old: []byte("p3"), New: []byte("new")})
		}),
		step("edit a plain queued job", "edit_queued", func(w *worker) (ports.StepReply, error) {
			return w.store.Edit(w.t.Context(),
				ports.EditRequest{Shard: w.shard, ID: "plain", Queued: true, Old: []byte("p0"), New: []byte("new")})
		}),
		step("import jobs", "import_jobs", func(w *worker) (ports.StepReply, error) {
			return w.importJobs("plain", "large", "elsewhere")
		}),
		step("import records", "import_past", func(w *worker) (ports.StepReply, error) {
			return w.importPast("plain", "elsewhere")
		}),
		step("delete failed", "delete", func(w *worker) (ports.StepReply, error) {
			return w.store.Delete(w.t.Context(), w.step())
		}),
		{"recount", "recount", true, func(w *worker) error {
			_, err := kit.Recounted(w.t.Context(), w.store, w.shard)
			return err
		}},
		{"recount what is wrong", "recount", true, func(w *worker) error {
			_, err := kit.Recounted(w.t.Context(), w.store, w.shard)
			return err
		}},
		step("cancel", "cancel", func(w *worker) (ports.StepReply, error) {
			return w.store.Cancel(w.t.Context(),
				ports.CancelRequest{Shard: w.shard, IDs: []string{"a", "cut"}, Drop: true})
		}),
	}
}

func deadLetterCalls() []scriptCall {
	dead := func(name, script string, do func(w *worker) (ports.StepReply, error)) scriptCall {
		return scriptCall{name, script, true, func(w *worker) error { _, err := do(w); return err }}
	}
	part := func(w *worker) ports.DeadLetterStep { return w.some("dead", 3, 7) }
	return []scriptCall{
		dead("revive", "revive_purge", func(w *worker) (ports.StepReply, error) {
			return w.store.Revive(w.t.Context(), w.dead("dead", "buried", "gone"))
		}),
		dead("revive a part", "revive_purge", func(w *worker) (ports.StepReply, error) {
			return w.store.Revive(w.t.Context(), part(w))
		}),
		dead("purge", "revive_purge", func(w *worker) (ports.StepReply, error) {
			return w.store.Purge(w.t.Context(), w.dead("dead", "buried", "gone"))
		}),
		dead("purge a part", "revive_purge", func(w *worker) (ports.StepReply, error) {
			return w.store.Purge(w.t.Context(), part(w))
		}),
		dead("revive a group", "revive_purge", func(w *worker) (ports.StepReply, error) {
			return w.store.Revive(w.t.Context(), w.group())
		}),
		dead("purge a group", "revive_purge", func(w *worker) (ports.StepReply, error) {
			return w.store.Purge(w.t.Context(), w.group())
		}),
		dead("import", "import", func(w *worker) (ports.StepReply, error) { return w.importLetter() }),
		dead("edit", "edit", func(w *worker) (ports.StepReply, error) {
			return w.store.Edit(w.t.Context(),
				ports.EditRequest{Shard: w.shard, ID: "dead", Old: []byte("p3"), New: []byte("new")})
		}),
		dead("edit the last payload", "edit", func(w *worker) (ports.StepReply, error) {
			return w.store.Edit(w.t.Context(),
				ports.EditRequest{Shard: w.shard, ID: "rest", Old: []byte("p0"), New: []byte("new")})
		}),
	}
}

// importJobs imports a job for each id, which joins one that is there or is new.
func (w *worker) importJobs(ids ...string) (ports.StepReply, error) {
	r := ports.ImportRequest{Shard: w.shard, Shards: 1, Generation: 1}
	for _, id := range ids {
		r.Jobs = append(r.Jobs, core.Job{
			ID: id,
			Payloads: []core.Payload{
				{Data: []byte("p3"), Score: 1}, {Data: []byte("other"), Score: 2, Meta: []byte("m")},
			},
			State: core.State{PerformAt: core.InstantOf(frozenNow), RetryCount: 7, FirstPush: 1, Failures: core.Failures{{Text: "boom"}}},
		})
	}
	return w.store.Import(w.t.Context(), r)
}

// importPast imports records of ids, with a result.
func (w *worker) importPast(ids ...string) (ports.StepReply, error) {
	r := ports.ImportRequest{Shard: w.shard, Shards: 1, Generation: 1}
	for _, id := range ids {
		r.Past = append(r.Past, core.Past{
			ID:       id,
			Started:  1,
			DoneAt:   core.InstantOf(frozenNow),
			Payloads: 1,
			Attempt:  1,
			Result:   []byte("{}"),
			Node:     "elsewhere",
		})
	}
	return w.store.Import(w.t.Context(), r)
}

// importLetter imports a dead letter that joins one that is there, and one that is new.
func (w *worker) importLetter() (ports.StepReply, error) {
	letter := func(id string) core.DeadLetter {
		payloads := []core.Payload{{Data: []byte("p3"), Score: 1}, {Data: []byte("other"), Score: 2, Meta: []byte("m")}}
		return core.DeadLetter{
			ID:        id,
			ChangedAt: core.InstantOf(frozenNow),
			Failures:  core.Failures{{Text: "boom"}},
			Group:     "boom",
			Payloads:  payloads,
		}
	}
	return w.store.Import(w.t.Context(), ports.ImportRequest{
		Shard: w.shard, Shards: 1, Generation: 1, DeadLetters: []core.DeadLetter{letter("dead"), letter("elsewhere")},
	})
}

func readCalls() []scriptCall {
	read := func(name, script string, do func(w *worker) error) scriptCall {
		return scriptCall{name, script, true, do}
	}
	page := ports.PageRequest{Queue: "orders", Limit: 100, Payloads: 100}
	all := []scriptCall{
		read("heads", "heads", func(w *worker) error {
			_, err := w.store.Heads(w.t.Context(), []core.Shard{w.shard})
			return err
		}),
		read("stats", "stats", func(w *worker) error {
			_, err := w.store.Stats(w.t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			return err
		}),
		{"stats beside urgent jobs", "oldest", false, func(w *worker) error {
			urgent := one("urgent", 1)
			urgent.When = core.Urgent(time.Hour)
			if err := w.push(urgent); err != nil {
				return err
			}
			_, err := w.store.Stats(w.t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			return err
		}},
		read("groups", "groups", func(w *worker) error {
			_, err := w.store.Groups(w.t.Context(), ports.GroupsRequest{Queue: "orders"})
			return err
		}),
		read("history", "history", func(w *worker) error {
			_, err := w.store.History(w.t.Context(), ports.HistoryRequest{Queue: "orders"})
			return err
		}),
		read("history by day", "days", func(w *worker) error {
			_, err := w.store.History(w.t.Context(), ports.HistoryRequest{Queue: "orders", Step: ports.Day})
			return err
		}),
		read("claimed", "claimed", func(w *worker) error {
			_, err := w.store.Claimed(w.t.Context(), page)
			return err
		}),
		read("rights", "rights", func(w *worker) error {
			_, err := openFrozen(w.client).Queues(w.t.Context())
			return err
		}),
	}
	for _, id := range []string{"large", "dead", "cut", "a", "whole", "gone", "never"} {
		all = append(all, read("find "+id, "find", func(w *worker) error {
			_, err := w.store.Find(w.t.Context(), ports.FindRequest{Queue: "orders", ID: id, Payloads: 1000})
			return err
		}))
		all = append(all, read("pending "+id, "pending", func(w *worker) error {
			_, err := w.store.Pending(w.t.Context(), ports.PendingRequest{Queue: "orders", IDs: []string{id, "a"}})
			return err
		}))
	}
	for order, name := range map[ports.SortBy]string{
		ports.ByTime:         "time",
		ports.ByID:           "id",
		ports.RetryingByTime: "failed by time",
	} {
		all = append(all, read("jobs by "+name, "rows", func(w *worker) error {
			_, err := w.store.Jobs(w.t.Context(), ports.JobsRequest{PageRequest: page, SortBy: order})
			return err
		}))
	}
	all = append(all, read("morgue behind many of one time", "places", func(w *worker) error {
		behind := ports.PageRequest{
			Queue: "orders", After: ports.Cursor{Key: frozenNow.UnixMicro(), ID: "zz"}, Limit: 1,
		}
		_, err := w.store.Morgue(w.t.Context(), ports.MorgueRequest{PageRequest: behind})
		return err
	}))
	all = append(all, read("morgue of a group", "rows", func(w *worker) error {
		_, err := w.store.Morgue(w.t.Context(), ports.MorgueRequest{PageRequest: page, Group: core.BuriedByHand})
		return err
	}))
	return append(all, read("morgue", "rows", func(w *worker) error {
		_, err := w.store.Morgue(w.t.Context(), ports.MorgueRequest{PageRequest: page})
		return err
	}))
}
