package push

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// inputCases are about unusual input: what calls accept, and how exactly the store keeps it.
func inputCases() []env.Case {
	return []env.Case{
		{Name: "refuses a whole push for one bad entry",
			Rule:  "Push: what PushRequest.Validate returns, with nothing stored",
			Check: inputRefusesWhole},
		{
			Name:  "refuses a bad rule or queue",
			Rule:  "Push: what PushRequest.Validate returns, with nothing stored",
			Check: inputRefusesRule,
		},
		{Name: "refuses another shard count or generation",
			Rule: "ErrShardCountMismatch is a shard count or generation that is not that of the queue's record; " +
				"nothing was written",
			Check: inputRefusesLayout},
		{
			Name:  "keeps unusual ids apart",
			Rule:  "RULES 1: an id is non-empty UTF-8, at most 512 bytes, no control characters",
			Check: inputOddIDs,
		},
		{
			Name:  "keeps payloads byte for byte",
			Rule:  "RULES 1: payload: bytes; the empty payload is a payload",
			Check: inputOddPayloads,
		},
		{
			Name:  "keeps a large payload",
			Rule:  "RULES 1: at most 512 KiB by default, an option",
			Check: inputLargePayload,
		},
		{
			Name:  "keeps scores exactly",
			Rule:  "RULES 1: score: finite float64; integers are exact up to 2^53",
			Check: inputScores,
		},
		{Name: "stores -0 as 0", Rule: "RULES 1: -0 is 0", Check: inputNegativeZero},
		{Name: "keeps instants exactly", Rule: "RULES 1: PerformAt 0 … 2^53 µs", Check: inputInstants},
		{Name: "assigns ids to their shards", Rule: "RULES 6: shard = crc32_ieee(id) mod shards", Check: inputDeals},
		{Name: "refuses names that are not text", Rule: ruleTexts, Check: inputOddNames},
		{
			Name: "finds no owner by a name that is not text",
			Rule: "Retire: an unknown server is not an error; " +
				"DrainNode: ErrUnknownNode; Consumer: ErrLeaseLost if the lease is not the last one",
			Check: inputOddOwners,
		},
		{
			Name:  "finds no queue by a name that is not text",
			Rule:  "ErrUnknownQueue is a queue that was never declared",
			Check: inputOddQueues,
		},
		{
			Name:  "settles and begins nothing by an id that is not text",
			Rule:  "Turn: settlements of jobs that are not claimed are skipped",
			Check: inputOddReceipts,
		},
		{
			Name:  "refuses or accepts a cursor that no page returned, but does not fail",
			Rule:  "Cursor: a store may refuse one whose ID no entry can have, with ErrInvalidRequest",
			Check: inputOddCursors,
		},
		{
			Name:  "stores every entry of a large push",
			Rule:  "Push: each entry makes a new job for its id or merges into the queued one",
			Check: inputManyEntries,
		},
	}
}

func inputRefusesWhole(e *env.Env) {
	good := env.Entry("good", "p", 1)
	bad := map[error]core.Entry{
		core.ErrInvalidID:      env.Entry("a\x00b", "p", 1),
		core.ErrInvalidScore:   env.Entry("a", "p", math.NaN()),
		core.ErrInvalidTime:    env.EntryAt("a", "p", 1, core.MaxInstant+1),
		core.ErrInvalidPayload: {ID: "a", Payload: core.Payload{Meta: make([]byte, core.MaxMetaBytes+1)}},
	}

	e.Unchanged("a refused Push", func() {
		for sentinel, en := range bad {
			_, err := e.Store.Push(e.Ctx, e.PushRequest(env.Orders, good, en, good))
			e.Refused(fmt.Sprintf("Push of %+v", en.ID), err, sentinel)
		}

		for _, id := range []string{"", "\xff", strings.Repeat("i", core.MaxIDBytes+1)} {
			_, err := e.Store.Push(e.Ctx, e.PushRequest(env.Orders, good, env.Entry(id, "p", 1)))
			e.Refused(fmt.Sprintf("Push of the id %.20q", id), err, core.ErrInvalidID)
		}
	})
}

func inputRefusesRule(e *env.Env) {
	e.Unchanged("a refused Push", func() {
		for _, rule := range []core.PushRule{{Kind: core.Debounce + 1}, {Kind: core.Debounce, Limit: -time.Second}} {
			r := e.PushRequest(env.Orders, env.Entry("a", "p", 1))
			r.Rule = rule
			_, err := e.Store.Push(e.Ctx, r)
			e.Refused(fmt.Sprintf("Push by %+v", rule), err, core.ErrInvalidRule)
		}
		_, err := e.Store.Push(e.Ctx, ports.PushRequest{Queue: "a b", Shards: 1, Generation: 1})
		e.Refused("Push to a bad name", err, core.ErrInvalidQueue)
	})
}

func inputRefusesLayout(e *env.Env) {
	e.Unchanged("a refused Push", func() {
		for _, change := range []func(*ports.PushRequest){
			func(r *ports.PushRequest) { r.Shards++ },
			func(r *ports.PushRequest) { r.Generation++ },
			func(r *ports.PushRequest) { r.Generation = 0 },
		} {
			r := e.PushRequest(env.Orders, env.Entry("a", "p", 1), env.Entry("b", "p", 1))
			change(&r)

			_, err := e.Store.Push(e.Ctx, r)
			what := fmt.Sprintf("Push for %d shards of generation %d", r.Shards, r.Generation)
			e.Refused(what, err, ports.ErrShardCountMismatch)

			var partial *ports.PushError
			if !errors.As(err, &partial) || !slices.Equal(partial.Entries, []int{0, 1}) {
				e.Errorf("%s returned %#v, want a *PushError that names entries 0 and 1", what, err)
			}
		}
	})
}

func inputOddIDs(e *env.Env) {
	want := env.OddIDs()
	for _, id := range want {
		e.Push(env.Entry(id, id, 1))
	}

	e.Same("the ids in order of their bytes", e.QueuedIDs(), want)

	h := e.Acquire("n1")
	claims := h.Claim(len(want))
	e.Same("the claimed ids", env.IDs(claims), want)

	h.Settle(env.SettleAll(claims, func(c core.Claim) core.Settlement { return env.Buried(c, c.ID) })...)
	for _, id := range want {
		e.Same("the dead letter", e.DeadLetter(id), core.DeadLetter{
			ID:        id,
			ChangedAt: env.Start,
			Failures:  env.Failures(id),
			Group:     core.OtherGroup,
			Payloads:  []core.Payload{env.Pay(id, 1)},
		})
	}
}

func inputOddPayloads(e *env.Env) {
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}

	payloads := []core.Payload{
		{Score: 1}, env.Pay("\x00", 2), env.Pay("\x00\x00", 3), env.Pay("\xff\xfe", 4), env.Pay(string(all[:]), 5),
		env.Pay("\r\n", 6), env.Pay("0", 7),
		{Data: []byte("meta"), Score: 8, Meta: all[:]},
	}

	for _, p := range payloads {
		e.Push(core.Entry{ID: "a", Payload: p})
	}
	e.Push(core.Entry{ID: "a", Payload: core.Payload{Data: []byte{}, Score: 9}})

	e.Same("the queued payloads", e.Queued("a").Payloads, payloads)

	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claimed payloads", c.Payloads, payloads)

	h.Settle(env.Buried(c, "for the morgue"))
	e.Same("the dead payloads", e.DeadLetter("a").Payloads, payloads)
}

func inputLargePayload(e *env.Env) {
	large := bytes.Repeat([]byte("0123456789abcde\n"), core.DefaultMaxPayloadBytes/16)
	e.Push(core.Entry{ID: "a", Payload: core.Payload{Data: large, Score: 1}})
	if got := e.Acquire("n1").One().Payloads; len(got) != 1 || !bytes.Equal(got[0].Data, large) {
		e.Errorf("a payload of %d bytes came back as %d payloads, or altered", len(large), len(got))
	}
}

func inputScores(e *env.Env) {
	scores := []float64{
		-math.MaxFloat64, -1 << 53, -1e15, -0.1, math.SmallestNonzeroFloat64, 1e-300, 0.1, 0.1 + 0.2, 0.3 + 0.1, 1,
		1_800_000_000.123456, 1_800_000_000.123457, 1<<53 - 1, 1 << 53, 1e300, math.MaxFloat64,
	}

	var want []core.Payload
	for i, s := range scores {
		want = append(want, env.Pay(fmt.Sprintf("%02d", i), s))
	}
	for _, p := range slices.Backward(want) {
		e.Push(core.Entry{ID: "a", Payload: p})
	}

	e.Same("the queued payloads", e.Queued("a").Payloads, want)
	e.Same("the claimed payloads", e.Acquire("n1").One().Payloads, want)
}

func inputNegativeZero(e *env.Env) {
	e.Push(env.Entry("a", "b", math.Copysign(0, -1)), env.Entry("a", "a", 0), env.Entry("a", "c", 0))
	got := e.Queued("a").Payloads
	e.Same("the payloads", got, []core.Payload{env.Pay("a", 0), env.Pay("b", 0), env.Pay("c", 0)})
	for _, p := range got {
		if math.Signbit(p.Score) {
			e.Errorf("the score of %q came back as -0, want 0", p.Data)
		}
	}
}

func inputInstants(e *env.Env) {
	instants := []core.Instant{0, 1, env.Start - 1, env.Start, env.Start + 1, core.MaxInstant - 1, core.MaxInstant}
	for i, at := range instants {
		e.Push(env.EntryAt(fmt.Sprint(i), "p", 1, at))
	}
	for i, j := range e.Jobs() {
		e.Same("the job", j, env.Job(fmt.Sprint(i), env.Fresh(instants[i]), env.Pay("p", 1)))
	}
	e.Same("the claimed", env.IDs(e.Acquire("n1").Claim(10)), []string{"0", "1", "2", "3"})
}

func inputDeals(e *env.Env) {
	const shards = 5
	e.Declare("wide", shards)

	var count [shards]int64
	for i := range 40 {
		id := fmt.Sprintf("order-%d", i)
		e.PushTo("wide", env.Entry(id, "p", 1))
		at := core.ShardOf(id, shards)
		count[at]++
		e.Same("the shard of "+id, e.FindIn("wide", id).Shard, core.Shard{Queue: "wide", Index: at})
	}

	for i, s := range e.Stats("wide").Shards {
		e.Same("the jobs of "+s.Shard.String(), s.Fresh, count[i])
	}
}

func inputManyEntries(e *env.Env) {
	e.Declare("wide", 3)
	const n = 1500
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = env.Entry(fmt.Sprint(i/2), fmt.Sprint(i), float64(i))
	}
	e.PushTo("wide", entries...)

	jobs := e.JobsOf("wide")
	e.Same("how many jobs there are", len(jobs), n/2)
	for _, j := range jobs {
		e.Same("the payloads of "+j.ID, len(j.Payloads), 2)
	}
}

const ruleTexts = "Validate: ErrInvalidRequest for an owner or a name that is not a core.Text"

func inputOddNames(e *env.Env) {
	h := e.Acquire("n1")
	for _, odd := range env.NoTexts() {
		for _, n := range []ports.Node{
			{Owner: odd}, {Owner: "o", Name: odd}, {Owner: "o", Host: odd}, {Owner: "o", Version: odd},
			{Owner: "o", Queues: []string{odd}},
		} {
			_, err := e.Store.Announce(e.Ctx, ports.AnnounceRequest{Node: n, TTL: env.TTL})
			e.Refused("Announce", err, ports.ErrInvalidRequest)
		}

		r := h.Request(1)
		r.Node = odd
		_, err := e.Store.Turn(e.Ctx, r)
		e.Refused("Turn", err, ports.ErrInvalidRequest)

		_, err = e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, odd))
		e.Refused("Acquire", err, ports.ErrInvalidRequest)

		_, err = e.Store.Permit(e.Ctx, ports.PermitRequest{
			Queue:   env.Orders,
			Owner:   odd,
			Attempt: 1,
			Limit:   1,
			Hold:    1,
			Want:    1,
			TTL:     env.TTL,
		})
		e.Refused("Permit", err, ports.ErrInvalidRequest)

		e.Refused(
			"Record",
			e.Store.Record(e.Ctx, ports.RecordRequest{Owner: odd, Records: []ports.Record{{Queue: env.Orders}}}),
			ports.ErrInvalidRequest,
		)
	}

	e.Same("the nodes", e.Nodes(), nil)
	h.Turn(0)
}

func inputOddOwners(e *env.Env) {
	h := e.Acquire("n1")
	for _, odd := range env.NoTexts() {
		e.Retire(odd)
		e.Refused("DrainNode", e.Store.DrainNode(e.Ctx, odd, true), ports.ErrUnknownNode)

		lease := h.Lease
		lease.Owner = odd
		r := h.Request(1)
		r.Lease = lease

		_, err := e.Store.Turn(e.Ctx, r)
		e.Refused("Turn", err, ports.ErrLeaseLost)

		_, err = e.Store.Renew(e.Ctx, ports.RenewRequest{Lease: lease, TTL: env.TTL})
		e.Refused("Renew", err, ports.ErrLeaseLost)
		e.Refused("Release", e.Store.Release(e.Ctx, lease), ports.ErrLeaseLost)
	}
	h.Turn(0)
}

func inputOddQueues(e *env.Env) {
	for _, odd := range env.NoTexts() {
		calls := e.UndeclaredCalls(odd)
		delete(calls, "Import") // like Push, Import refuses such a name with another error
		for what, err := range calls {
			e.Refused(fmt.Sprintf("%s on queue %q", what, odd), err, ports.ErrUnknownQueue)
		}
	}
}

func inputOddReceipts(e *env.Env) {
	h, c := e.ClaimedJob()
	var odd []core.Settlement
	r := h.Request(0)

	for _, id := range env.NoTexts() {
		other := c
		other.ID = id
		odd = append(odd, env.Done(other))
		r.Begin = append(r.Begin, core.ClaimRef{ID: id, Receipt: c.Receipt})
	}

	r.Settlements = odd
	reply := h.Send(r)
	e.Reported("the skipped", reply.Skipped, []int{0, 1, 2})
	e.Reported("the claims that did not begin", reply.NotBegun, []int{0, 1, 2})

	h.Settle(env.Done(c))
}

func inputOddCursors(e *env.Env) {
	e.PushIDs("a", "b")
	for _, odd := range env.NoTexts() {
		page := ports.PageRequest{Queue: env.Orders, After: ports.Cursor{Key: 1, ID: odd}}
		_, jobs := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: page, SortBy: ports.RetryingByID})
		_, claimed := e.Store.Claimed(e.Ctx, page)
		_, dead := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: page})
		for _, err := range []error{jobs, claimed, dead} {
			if err != nil && !errors.Is(err, ports.ErrInvalidRequest) {
				e.Errorf("a list after %q: %v", odd, err)
			}
		}
	}
}
