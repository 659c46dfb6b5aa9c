package redis_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// record changes a stored record of the worker's shard.
func (w *worker) record(key, id string, change func(stored string) string) {
	w.t.Helper()
	hash := "skein:{orders/0}:" + key
	stored, err := w.client.HGet(w.t.Context(), hash, id).Result()
	w.must(err)
	w.must(w.client.HSet(w.t.Context(), hash, id, change(stored)).Err())
}

// aside checks that these ids are set aside, each as often as it is named, and returns their
// records.
func (w *worker) aside(ids ...string) []ports.QuarantinedRecord {
	w.t.Helper()
	page, err := w.store.Quarantined(w.t.Context(), ports.QuarantineRequest{Shard: w.shard})
	w.must(err)
	var got []string
	for _, r := range page.Records {
		got = append(got, r.ID)
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		w.t.Errorf("set aside are %q, want %q", got, ids)
	}
	return page.Records
}

// Whichever part of a record is damaged, a step neither moves it nor fails.
func TestRedisEachDamageOfARecordIsSeen(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	replace := func(text string) func(string) string { return func(string) string { return text } }
	for name, change := range map[string]func(string) string{
		"a list that is cut":        func(s string) string { return s[:len(s)-1] },
		"a list with more behind":   func(s string) string { return s + "x" },
		"a list with unknown flags": func(s string) string { return string([]byte{s[0] | 0x04}) + s[1:] },
		"a list with an empty slot": func(s string) string { return string([]byte{s[0] | 0x80}) + "\x00\x00" + s[1:] },
		"a list of many more":       func(s string) string { return s[:1] + "\xff" + s[2:] },
		"a first push of no time":   replace("\x08\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xffdata"),
		"a cut first push":          replace("\x08\x00\x00\x00\x00\x00\x00\x01\xff\xff"),
		"a cut slot":                replace("\x80\x00\x00\x00\x00\x00\x00\x01\x00\x09slot"),
		"a long slot":               replace("\x80\x00\x00\x00\x00\x00\x00\x01\x02\x01" + strings.Repeat("s", 513) + "data"),
		"cut tags":                  replace("\x10\x00\x00\x00\x00\x00\x00\x01\x00\x09tags"),
		"a cut Meta":                replace("\x04\x00\x00\x00\x00\x00\x00\x01\x00\x09meta"),
		"a cut error": replace(
			"\x20\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09boom",
		),
		"many and more":            replace("\x02more"),
		"a score that is infinite": replace("\x01\xff\xf0\x00\x00\x00\x00\x00\x00data"),
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, false)
		must(t, w.push(one("list", 1), one("list", 2), one("list", 3)))
		w.record("j", "list", change)
		if err := w.bury("list", "b"); err != nil {
			t.Errorf("%s: a bury failed: %v", name, err)
		}
		w.aside("list")
		stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		if must(t, err); stats[0].Dead != 1 || stats[0].Fresh != 0 {
			t.Errorf("%s: %d dead letters and %d fresh jobs, want the other alone to be dead",
				name, stats[0].Dead, stats[0].Fresh)
		}
	}
}

// Whichever part of a dead letter is damaged, including its group, a step neither moves it nor
// fails, and it is in no group.
func TestRedisEachDamageOfADeadLetterIsSeen(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	replace := func(text string) func(string) string { return func(string) string { return text } }
	group := len(core.BuriedByHand)
	list := "\x00\x00\x00\x1b" + strings.Repeat("\x00", 8) + "\x00" + "\x00\x00\x00\x0e" + core.BuriedByHand
	for name, change := range map[string]func(string) string{
		"a second failure that is cut": func(s string) string {
			return strings.Replace(s, list, "\x00\x00\x00\x20"+list[4:]+"short", 1)
		},
		"nothing at all":              replace(""),
		"no group":                    func(s string) string { return "\x00" + s[1+group:] },
		"a group alone":               func(s string) string { return s[:1+group] },
		"a part of a group":           func(s string) string { return s[:group] },
		"a group that is too long":    func(s string) string { return "\x41" + strings.Repeat("x", 65) + s[1+group:] },
		"a letter with unknown flags": func(s string) string { return s[:1+group] + "\xff" + s[2+group:] },
		"a letter that is cut":        func(s string) string { return s[:1+group+12] },
		"another group and a cut":     func(s string) string { return "\x03bad" + s[1+group:1+group+12] },
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, false)
		must(t, w.push(one("x", 1), one("y", 1)))
		must(t, w.bury("x", "y"))
		w.record("x", "x", change)
		if err := w.purge(w.dead("x")); err != nil {
			t.Errorf("%s: a purge failed: %v", name, err)
		}
		w.aside("x")
		reply, err := w.store.Groups(t.Context(), ports.GroupsRequest{Queue: "orders"})
		if must(t, err); len(reply.Groups) != 1 || reply.Dead != 1 {
			t.Errorf("%s: the groups are %+v, want one dead letter", name, reply)
		}
		page, err := w.store.Morgue(t.Context(),
			ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: "orders"}, Group: core.BuriedByHand})
		if must(t, err); len(page.DeadLetters) != 1 || page.DeadLetters[0].ID != "y" {
			t.Errorf("%s: the group has %+v, want y", name, page.DeadLetters)
		}
	}
}

// A damaged claim is set aside by a turn and by a takeover. Its id is then free, without a cancel
// and without a mark that it runs alone.
func TestRedisDamagedClaimsFreeTheirID(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	cut := func(n int) func(string) string { return func(s string) string { return s[:len(s)-n] } }
	for name, tt := range map[string]struct {
		change func(string) string
		meet   func(w *worker) error
	}{
		"a retry of one that is cut": {cut(12), func(w *worker) error {
			return w.turn(ports.TurnRequest{Settlements: w.settle("a", failure())})
		}},
		"a retry of one whose time is none": {func(s string) string {
			from := 26 + int(s[24])<<8 + int(s[25])
			return s[:from] + "\xff\xff\xff\xff\xff\xff\xff\xff" + s[from+8:]
		}, func(w *worker) error { return w.turn(ports.TurnRequest{Settlements: w.settle("a", failure())}) }},
		"a retry of a list with more behind": {func(s string) string {
			from := 34 + int(s[24])<<8 + int(s[25])
			return s[:from] + "\x03\x00\x00\x00\x01" + strings.Repeat("\x00", 14) + "more"
		}, func(w *worker) error { return w.turn(ports.TurnRequest{Settlements: w.settle("a", failure())}) }},
		"a takeover": {cut(12), func(w *worker) error {
			must(w.t, w.store.Release(w.t.Context(), w.lease))
			return w.acquire("other", 1)
		}},
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, false)
		must(t, w.push(one("a", 7)))
		must(t, w.cancel("a"))
		w.record("c", "a", tt.change)
		must(t, client.HSet(t.Context(), "skein:{orders/0}:l", "alone", 1).Err()) // as if it ran alone
		if err := tt.meet(w); err != nil {
			t.Errorf("%s failed: %v", name, err)
		}
		w.aside("a")
		if n := client.Exists(t.Context(), "skein:{orders/0}:k").Val(); n != 0 {
			t.Errorf("%s: its cancel is still there", name)
		}
		w.claims = map[string]core.Claim{}
		must(t, w.turn(ports.TurnRequest{Want: 10}))
		if len(w.claims) != 2 || len(w.claims["a"].Payloads) != 1 {
			t.Errorf("%s: the next turn claims %+v, want b and what was pushed for a", name, w.claims)
		}
	}
}

// Whichever part of a claim is damaged, a turn that ends one of its payloads sets it aside and
// settles the others.
func TestRedisAPartMeetsADamagedClaim(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	job := func(s string) int { return 34 + int(s[24])<<8 + int(s[25]) }
	for name, change := range map[string]func(string) string{
		"a receipt alone":         func(s string) string { return s[:16] },
		"no time":                 func(s string) string { return s[:job(s)-8] },
		"no job":                  func(s string) string { return s[:job(s)] },
		"unknown flags":           func(s string) string { return s[:job(s)] + "\xa7" + s[job(s)+1:] },
		"a cut list":              func(s string) string { return s[:job(s)+3] },
		"a cut payload behind it": func(s string) string { return s[:len(s)-3] },
		"a payload beyond the end": func(s string) string {
			return s[:job(s)+13] + "\xff\xff\xff\xff" + s[job(s)+17:]
		},
		"more behind": func(s string) string { return s + "more" },
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, false)
		must(t, w.push(many("m", 3)...))
		must(t, w.turn(ports.TurnRequest{Want: 10}))
		m := w.claims["m"]
		w.record("c", "m", change)
		err := w.turn(ports.TurnRequest{
			Settlements: w.settle("b", core.Outcome{Kind: core.Done}),
			Parts:       []core.PayloadSettlement{m.SettlePayload(1)},
		})
		if err != nil {
			t.Errorf("%s: the turn failed: %v", name, err)
			continue
		}
		w.aside("m")
		stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		if must(t, err); stats[0].Processed != 1 {
			t.Errorf("%s: %d jobs were processed, want b", name, stats[0].Processed)
		}
	}
}

// A turn that is repeated leaves out records that were damaged in between.
func TestRedisRepeatedTurnPassesOverDamage(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	must(t, w.push(one("c", 1)))
	must(t, w.turn(ports.TurnRequest{Want: 10}))
	w.record("c", "b", func(s string) string { return s[:30] })
	w.number--
	w.claims = map[string]core.Claim{}
	must(t, w.turn(ports.TurnRequest{Want: 10, Resent: true}))
	if _, ok := w.claims["c"]; !ok || len(w.claims) != 1 {
		t.Errorf("the repeat has %+v, want c alone", w.claims)
	}
	w.aside("b")
}

// A turn claims no job with unknown flags.
func TestRedisTurnTakesNoUnknownFlags(t *testing.T) {
	t.Parallel()
	w := newWorker(t, testservers.OwnRedis(t), false)
	w.record("j", "b", func(s string) string {
		return string([]byte{s[0] | 0x07}) + s[1:] + " and enough to seem whole"
	})
	must(t, w.turn(ports.TurnRequest{Want: 10}))
	if len(w.claims) != 1 {
		t.Errorf("the turn claims %+v beside a, want nothing", w.claims)
	}
	w.aside("b")
}

// A claim is handed over if only the name of its node can't be read.
func TestRedisHandsOverAClaimOfNobody(t *testing.T) {
	t.Parallel()
	w := newWorker(t, testservers.OwnRedis(t), false)
	w.record("c", "a", func(s string) string { return s[:26] + "\xff" + s[27:] })
	must(t, w.store.Release(t.Context(), w.lease))
	reply, err := w.store.Acquire(t.Context(),
		ports.AcquireRequest{Shard: w.shard, Shards: 1, Generation: 1, Owner: "other", Attempt: 1, TTL: time.Minute})
	if must(t, err); len(reply.Claims) != 1 || len(reply.Claims[0].Payloads) != 1 {
		t.Errorf("the acquire hands over %+v, want a with its payload", reply.Claims)
	}
	w.aside()
}

// While something is claimed a damaged job seems due, so that a turn comes and sets it aside.
func TestRedisDamagedHeadIsDue(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	for _, damaged := range []string{"\xff\xff\xff\xff", ""} {
		w.record("j", "b", func(string) string { return damaged })
		heads, err := w.store.Heads(t.Context(), []core.Shard{w.shard})
		if must(t, err); len(heads.Heads) != 1 || !heads.Heads[0].OK {
			t.Errorf("the head of a job that is %q is %+v, want it to be due", damaged, heads)
		}
	}
}

// Records that are set aside twice at one instant have two keys. A job that was pushed anew in
// between stays when another call, which has met the damage too, sets it aside late.
func TestRedisSetsAsideOnce(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	recorder := recordScript(t, "set_aside")
	w := newWorker(t, client, false)
	client.AddHook(recorder)
	for _, score := range []float64{3, 4} {
		w.record("j", "b", func(string) string { return "?" })
		must(t, w.push(one("b", score)))
	}
	records := w.aside("b", "b")
	if len(records) == 2 && records[0].Key == records[1].Key {
		t.Errorf("both have the key %q", records[0].Key)
	}
	must(t, client.Do(t.Context(), recorder.last()...).Err())
	w.aside("b", "b")
	found, err := w.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "b", Payloads: 1000})
	if must(t, err); found.Queued == nil || len(found.Queued.Payloads) != 1 {
		t.Errorf("the job that was pushed anew is %+v", found.Queued)
	}
}

// A failure whose time is no instant is damage like any other: nobody sees such a time, which no
// JSON can have, of a job, a claim or a dead letter.
func TestRedisAFailureHasATimeThatIsAnInstant(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	beyond := func(s string) string {
		at := strings.Index(s, "\x00\x00\x00\x04boom") - 1 - 8 // behind it is the length of the node's name
		return s[:at] + "\x7f" + s[at+1:]
	}
	w := newWorker(t, client, false)
	again := failure()
	again.Delay = 0
	must(t, w.push(one("claimed", 1), one("dead", 1)))
	must(t, w.turn(ports.TurnRequest{Want: 10}))
	must(t, w.turn(ports.TurnRequest{Settlements: w.settle("dead", core.Outcome{Kind: core.Buried, Error: "boom"})}))
	must(t, w.turn(ports.TurnRequest{Settlements: w.settle("claimed", again)}))
	must(t, w.turn(ports.TurnRequest{Settlements: w.settle("a", failure()), Want: 10}))
	w.record("j", "a", beyond)
	w.record("c", "claimed", beyond)
	w.record("x", "dead", beyond)

	var times []core.Instant
	page := ports.PageRequest{Queue: "orders"}
	jobs, err := w.store.Jobs(t.Context(), ports.JobsRequest{PageRequest: page})
	must(t, err)
	for _, j := range jobs.Jobs {
		times = append(times, j.Failures.Newest().At)
	}
	claimed, err := w.store.Claimed(t.Context(), page)
	must(t, err)
	for _, c := range claimed.Claims {
		times = append(times, c.Failures.Newest().At)
	}
	morgue, err := w.store.Morgue(t.Context(), ports.MorgueRequest{PageRequest: page})
	must(t, err)
	for _, d := range morgue.DeadLetters {
		times = append(times, d.Failures.Newest().At)
	}
	for _, at := range times {
		if at < 0 || at > core.MaxInstant {
			t.Errorf("a list shows a failure at %d µs", at)
		}
	}
}
