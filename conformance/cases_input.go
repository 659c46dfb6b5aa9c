package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// inputCases are about unusual input: what calls accept, and how exactly the store keeps it.
func inputCases() []namedCase {
	return []namedCase{
		{"refuses a whole push for one bad entry",
			"Push: what PushRequest.Validate returns, with nothing stored",
			inputRefusesWhole},
		{"refuses a bad rule or queue", "Push: what PushRequest.Validate returns, with nothing stored", inputRefusesRule},
		{"refuses another shard count or generation",
			"ErrShardCountMismatch is a shard count or generation that is not that of the queue's record; nothing was written",
			inputRefusesLayout},
		{"keeps unusual ids apart", "RULES 1: an id is non-empty UTF-8, at most 512 bytes, no control characters", inputOddIDs},
		{"keeps payloads byte for byte", "RULES 1: payload: bytes; the empty payload is a payload", inputOddPayloads},
		{"keeps a large payload", "RULES 1: at most 512 KiB by default, an option", inputLargePayload},
		{"keeps scores exactly", "RULES 1: score: finite float64; integers are exact up to 2^53", inputScores},
		{"stores -0 as 0", "RULES 1: -0 is 0", inputNegativeZero},
		{"keeps instants exactly", "RULES 1: PerformAt 0 … 2^53 µs", inputInstants},
		{"assigns ids to their shards", "RULES 6: shard = crc32_ieee(id) mod shards", inputDeals},
		{"refuses names that are not text", ruleTexts, inputOddNames},
		{"finds no owner by a name that is not text", "Retire: an unknown server is not an error; DrainNode: ErrUnknownNode; Consumer: ErrLeaseLost if the lease is not the last one", inputOddOwners},
		{"finds no queue by a name that is not text", "ErrUnknownQueue is a queue that was never declared", inputOddQueues},
		{"settles and begins nothing by an id that is not text", "Turn: settlements of jobs that are not claimed are skipped", inputOddReceipts},
		{"refuses or accepts a cursor that no page returned, but does not fail", "Cursor: a store may refuse one whose ID no entry can have, with ErrInvalidRequest", inputOddCursors},
		{"stores every entry of a large push", "Push: each entry makes a new job for its id or merges into the queued one", inputManyEntries},
	}
}

func inputRefusesWhole(e *env) {
	good := entry("good", "p", 1)
	bad := map[error]core.Entry{
		core.ErrInvalidID:      entry("a\x00b", "p", 1),
		core.ErrInvalidScore:   entry("a", "p", math.NaN()),
		core.ErrInvalidTime:    entryAt("a", "p", 1, core.MaxInstant+1),
		core.ErrInvalidPayload: {ID: "a", Payload: core.Payload{Meta: make([]byte, core.MaxMetaBytes+1)}},
	}
	e.unchanged("a refused Push", func() {
		for sentinel, en := range bad {
			_, err := e.store.Push(e.ctx, e.pushRequest(orders, good, en, good))
			e.refused(fmt.Sprintf("Push of %+v", en.ID), err, sentinel)
		}
		for _, id := range []string{"", "\xff", strings.Repeat("i", core.MaxIDBytes+1)} {
			_, err := e.store.Push(e.ctx, e.pushRequest(orders, good, entry(id, "p", 1)))
			e.refused(fmt.Sprintf("Push of the id %.20q", id), err, core.ErrInvalidID)
		}
	})
}

func inputRefusesRule(e *env) {
	e.unchanged("a refused Push", func() {
		for _, rule := range []core.PushRule{{Kind: core.Debounce + 1}, {Kind: core.Debounce, Limit: -time.Second}} {
			r := e.pushRequest(orders, entry("a", "p", 1))
			r.Rule = rule
			_, err := e.store.Push(e.ctx, r)
			e.refused(fmt.Sprintf("Push by %+v", rule), err, core.ErrInvalidRule)
		}
		_, err := e.store.Push(e.ctx, ports.PushRequest{Queue: "a b", Shards: 1, Generation: 1})
		e.refused("Push to a bad name", err, core.ErrInvalidQueue)
	})
}

func inputRefusesLayout(e *env) {
	e.unchanged("a refused Push", func() {
		for _, change := range []func(*ports.PushRequest){
			func(r *ports.PushRequest) { r.Shards++ },
			func(r *ports.PushRequest) { r.Generation++ },
			func(r *ports.PushRequest) { r.Generation = 0 },
		} {
			r := e.pushRequest(orders, entry("a", "p", 1), entry("b", "p", 1))
			change(&r)
			_, err := e.store.Push(e.ctx, r)
			what := fmt.Sprintf("Push for %d shards of generation %d", r.Shards, r.Generation)
			e.refused(what, err, ports.ErrShardCountMismatch)
			var partial *ports.PushError
			if !errors.As(err, &partial) || !slices.Equal(partial.Entries, []int{0, 1}) {
				e.errorf("%s returned %#v, want a *PushError that names entries 0 and 1", what, err)
			}
		}
	})
}

// oddIDs returns ids that a careless store might mix up, because it folds or truncates ids. They
// are in order of their bytes.
func oddIDs() []string {
	ids := []string{
		" ", "  ", "%s", "'", "''", "\"", "$1", "*", "-1", "0", "00", "1", "1.0", "10", "2", "9",
		":", "A", "a", "a ", "a:b", "a/b", "a\\b", "e\u0301", "é", "ß", "ss", "nil", "null", "{a}", "}",
		"\u00a0", "\u200b", "\u2028", "日本語", "\ufffd", "\U0001F9F6",
		strings.Repeat("i", core.MaxIDBytes), strings.Repeat("i", core.MaxIDBytes-1), strings.Repeat("é", core.MaxIDBytes/2),
	}
	slices.Sort(ids)
	return ids
}

func inputOddIDs(e *env) {
	want := oddIDs()
	for _, id := range want {
		e.push(entry(id, id, 1))
	}
	e.same("the ids in order of their bytes", e.queuedIDs(), want)
	h := e.acquire("n1")
	claims := h.claim(len(want))
	e.same("the claimed ids", ids(claims), want)
	h.settle(settleAll(claims, func(c core.Claim) core.Settlement { return buried(c, c.ID) })...)
	for _, id := range want {
		e.same("the dead letter", e.deadLetter(id), core.DeadLetter{
			ID: id, ChangedAt: start, Error: id, Group: core.OtherGroup, Payloads: []core.Payload{pay(id, 1)},
		})
	}
}

func inputOddPayloads(e *env) {
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	payloads := []core.Payload{
		{Score: 1}, pay("\x00", 2), pay("\x00\x00", 3), pay("\xff\xfe", 4), pay(string(all[:]), 5), pay("\r\n", 6), pay("0", 7),
		{Data: []byte("meta"), Score: 8, Meta: all[:]},
	}
	for _, p := range payloads {
		e.push(core.Entry{ID: "a", Payload: p})
	}
	e.push(core.Entry{ID: "a", Payload: core.Payload{Data: []byte{}, Score: 9}})
	e.same("the queued payloads", e.queued("a").Payloads, payloads)
	h := e.acquire("n1")
	c := h.one()
	e.same("the claimed payloads", c.Payloads, payloads)
	h.settle(buried(c, "for the morgue"))
	e.same("the dead payloads", e.deadLetter("a").Payloads, payloads)
}

func inputLargePayload(e *env) {
	large := bytes.Repeat([]byte("0123456789abcde\n"), core.DefaultMaxPayloadBytes/16)
	e.push(core.Entry{ID: "a", Payload: core.Payload{Data: large, Score: 1}})
	if got := e.acquire("n1").one().Payloads; len(got) != 1 || !bytes.Equal(got[0].Data, large) {
		e.errorf("a payload of %d bytes came back as %d payloads, or altered", len(large), len(got))
	}
}

func inputScores(e *env) {
	scores := []float64{
		-math.MaxFloat64, -1 << 53, -1e15, -0.1, math.SmallestNonzeroFloat64, 1e-300, 0.1, 0.1 + 0.2, 0.3 + 0.1, 1,
		1_800_000_000.123456, 1_800_000_000.123457, 1<<53 - 1, 1 << 53, 1e300, math.MaxFloat64,
	}
	var want []core.Payload
	for i, s := range scores {
		want = append(want, pay(fmt.Sprintf("%02d", i), s))
	}
	for _, p := range slices.Backward(want) {
		e.push(core.Entry{ID: "a", Payload: p})
	}
	e.same("the queued payloads", e.queued("a").Payloads, want)
	e.same("the claimed payloads", e.acquire("n1").one().Payloads, want)
}

func inputNegativeZero(e *env) {
	e.push(entry("a", "b", math.Copysign(0, -1)), entry("a", "a", 0), entry("a", "c", 0))
	got := e.queued("a").Payloads
	e.same("the payloads", got, []core.Payload{pay("a", 0), pay("b", 0), pay("c", 0)})
	for _, p := range got {
		if math.Signbit(p.Score) {
			e.errorf("the score of %q came back as -0, want 0", p.Data)
		}
	}
}

func inputInstants(e *env) {
	instants := []core.Instant{0, 1, start - 1, start, start + 1, core.MaxInstant - 1, core.MaxInstant}
	for i, at := range instants {
		e.push(entryAt(fmt.Sprint(i), "p", 1, at))
	}
	for i, j := range e.jobs() {
		e.same("the job", j, job(fmt.Sprint(i), fresh(instants[i]), pay("p", 1)))
	}
	e.same("the claimed", ids(e.acquire("n1").claim(10)), []string{"0", "1", "2", "3"})
}

func inputDeals(e *env) {
	const shards = 5
	e.declare("wide", shards)
	var count [shards]int64
	for i := range 40 {
		id := fmt.Sprintf("order-%d", i)
		e.pushTo("wide", entry(id, "p", 1))
		at := core.ShardOf(id, shards)
		count[at]++
		e.same("the shard of "+id, e.findIn("wide", id).Shard, core.Shard{Queue: "wide", Index: at})
	}
	for i, s := range e.stats("wide").Shards {
		e.same("the jobs of "+s.Shard.String(), s.Fresh, count[i])
	}
}

func inputManyEntries(e *env) {
	e.declare("wide", 3)
	const n = 1500
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = entry(fmt.Sprint(i/2), fmt.Sprint(i), float64(i))
	}
	e.pushTo("wide", entries...)
	jobs := e.jobsOf("wide")
	e.same("how many jobs there are", len(jobs), n/2)
	for _, j := range jobs {
		e.same("the payloads of "+j.ID, len(j.Payloads), 2)
	}
}

const ruleTexts = "Validate: ErrInvalidRequest for an owner or a name that is not a core.Text"

// noTexts returns strings that are not a core.Text: one with a NUL, and two that are not UTF-8.
func noTexts() []string { return []string{"a\x00b", "a\xff", "\xf0\x9f"} }

func inputOddNames(e *env) {
	h := e.acquire("n1")
	for _, odd := range noTexts() {
		for _, n := range []ports.Node{
			{Owner: odd}, {Owner: "o", Name: odd}, {Owner: "o", Host: odd}, {Owner: "o", Version: odd}, {Owner: "o", Queues: []string{odd}},
		} {
			_, err := e.store.Announce(e.ctx, ports.AnnounceRequest{Node: n, TTL: ttl})
			e.refused("Announce", err, ports.ErrInvalidRequest)
		}
		r := h.request(1)
		r.Node = odd
		_, err := e.store.Turn(e.ctx, r)
		e.refused("Turn", err, ports.ErrInvalidRequest)
		_, err = e.store.Acquire(e.ctx, e.acquireRequest(e.shard, odd))
		e.refused("Acquire", err, ports.ErrInvalidRequest)
		_, err = e.store.Permit(e.ctx, ports.PermitRequest{Queue: orders, Owner: odd, Attempt: 1, Limit: 1, Hold: 1, Want: 1, TTL: ttl})
		e.refused("Permit", err, ports.ErrInvalidRequest)
		e.refused("Record", e.store.Record(e.ctx, ports.RecordRequest{Owner: odd, Records: []ports.Record{{Queue: orders}}}), ports.ErrInvalidRequest)
	}
	e.same("the nodes", e.nodes(), nil)
	h.turn(0)
}

func inputOddOwners(e *env) {
	h := e.acquire("n1")
	for _, odd := range noTexts() {
		e.retire(odd)
		e.refused("DrainNode", e.store.DrainNode(e.ctx, odd, true), ports.ErrUnknownNode)
		lease := h.lease
		lease.Owner = odd
		r := h.request(1)
		r.Lease = lease
		_, err := e.store.Turn(e.ctx, r)
		e.refused("Turn", err, ports.ErrLeaseLost)
		_, err = e.store.Renew(e.ctx, ports.RenewRequest{Lease: lease, TTL: ttl})
		e.refused("Renew", err, ports.ErrLeaseLost)
		e.refused("Release", e.store.Release(e.ctx, lease), ports.ErrLeaseLost)
	}
	h.turn(0)
}

func inputOddQueues(e *env) {
	for _, odd := range noTexts() {
		calls := undeclaredCalls(e, odd)
		delete(calls, "Import") // like Push, Import refuses such a name with another error
		for what, err := range calls {
			e.refused(fmt.Sprintf("%s on queue %q", what, odd), err, ports.ErrUnknownQueue)
		}
	}
}

func inputOddReceipts(e *env) {
	h, c := claimedJob(e)
	var odd []core.Settlement
	r := h.request(0)
	for _, id := range noTexts() {
		other := c
		other.ID = id
		odd = append(odd, done(other))
		r.Begin = append(r.Begin, core.ClaimRef{ID: id, Receipt: c.Receipt})
	}
	r.Settlements = odd
	reply := h.send(r)
	e.reported("the skipped", reply.Skipped, []int{0, 1, 2})
	e.reported("the claims that did not begin", reply.NotBegun, []int{0, 1, 2})
	h.settle(done(c))
}

func inputOddCursors(e *env) {
	e.pushIDs("a", "b")
	for _, odd := range noTexts() {
		page := ports.PageRequest{Queue: orders, After: ports.Cursor{Key: 1, ID: odd}}
		_, jobs := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: page, SortBy: ports.RetryingByID})
		_, claimed := e.store.Claimed(e.ctx, page)
		_, dead := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: page})
		for _, err := range []error{jobs, claimed, dead} {
			if err != nil && !errors.Is(err, ports.ErrInvalidRequest) {
				e.errorf("a list after %q: %v", odd, err)
			}
		}
	}
}

func settleErrorTexts(e *env) {
	h, c := claimedJob(e)
	for _, odd := range append(noTexts(), strings.Repeat("é", core.MaxErrorBytes)) {
		c = h.one(failed(c, odd, 0))
		e.same("the job's error", c.Error, core.ErrorText(odd))
	}
	h.settle(buried(c, "a\x00\xff"))
	e.same("the dead letter's error", e.deadLetter("a").Error, core.ErrorText("a\x00\xff"))
}
