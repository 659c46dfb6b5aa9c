package conformance

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleSettler = "Settler: settlements of one shard, all or none; each (ID, Receipt) must be claimed"

func settlerCases() []namedCase {
	return append([]namedCase{
		{"settles outside a turn", ruleSettler, settlerSettles},
		{"buries in a group", ruleGroups, settlerGroups},
		{"settles all or none", "Settle: ErrLeaseLost, with nothing changed, if one is not claimed", settlerAllOrNone},
		{"can't be repeated", "Settle: repeating it after success returns ErrLeaseLost", settlerOnce},
		{"takes no lease", "Settle: the claimed jobs are the fence: it takes no lease", settlerTakesNoLease},
		{"takes jobs out of a turn's repeat", "Turn: a repeat returns the jobs that still carry this receipt", settlerRepeat},
	}, payloadCases()...)
}

func (e *env) settleOutside(s ...core.Settlement) error {
	since := e.repeats.Lossy.Load()
	err := e.store.(ports.Settler).Settle(e.ctx, e.shard, s)
	e.giveUpIfRepeated(since)
	return err
}

func settlerSettles(e *env) {
	e.pushIDs("a", "b", "c")
	claims := e.acquire("n1").claim(3)
	e.must(e.settleOutside(done(claims[0]), failed(claims[1], "boom", time.Minute), buried(claims[2], "no use")), "Settle")
	e.same("the job put back", e.queued("b").State, core.State{
		PerformAt: start.Add(time.Minute), FirstPush: start, Error: "boom",
	})
	e.same("the dead", e.deadIDs(), []string{"c"})
	counts := e.counts()
	e.same("claimed, processed and failed", [3]int64{counts.Claimed, counts.Processed, counts.Failed}, [3]int64{0, 1, 2})
}

func settlerGroups(e *env) {
	e.pushIDs("a", "b", "c")
	claims := e.acquire("n1").claim(3)
	e.clock.Advance(time.Second)
	long := strings.Repeat("é", core.MaxGroupBytes)
	e.must(e.settleOutside(buriedAs(claims[0], "timeout"), buriedAs(claims[1], long), buriedAs(claims[2], "")), "Settle")
	e.haveGroups("of what was settled outside", groupOf(core.OtherGroup, 1, 1, 1), groupOf("timeout", 1, 1, 1), groupOf(core.GroupName(long), 1, 1, 1))
	e.lists("the list of a group", orders, e.morgueOf("timeout"), []string{"a"})
}

func settlerAllOrNone(e *env) {
	e.pushIDs("a", "b")
	claims := e.acquire("n1").claim(2)
	other := claims[1]
	other.Receipt.Number++
	e.unchanged("a refused Settle", func() {
		e.refused("Settle with another receipt", e.settleOutside(done(claims[0]), done(other)), ports.ErrLeaseLost)
		e.refused("Settle of one twice", e.settleOutside(done(claims[0]), done(claims[0])), ports.ErrLeaseLost)
	})
}

func settlerOnce(e *env) {
	e.pushIDs("a")
	c := e.acquire("n1").one()
	e.must(e.settleOutside(done(c)), "Settle")
	e.unchanged("a repeated Settle", func() {
		e.refused("Settle again", e.settleOutside(done(c)), ports.ErrLeaseLost)
	})
}

func settlerTakesNoLease(e *env) {
	e.pushIDs("a")
	c := claimAndCrash(e, "n1")[0]
	h := e.acquire("n2")
	h.orphans()
	e.must(e.settleOutside(done(c)), "Settle of a job whose lease is over")
	e.reported("what the new lease can settle of it", h.settle(recovered(c)).Skipped, []int{0})
	e.same("the lease's owner", e.stats(orders).Shards[0].Owner, "n2")
}

func settlerRepeat(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(2)
	claims := h.send(r).Claims
	e.must(e.settleOutside(done(claims[0])), "Settle")
	e.same("the claims again", h.send(r).Claims, claims[1:])
}

// transactionCases are about calls in a transaction together with calls outside of it.
func transactionCases() []namedCase {
	return []namedCase{
		{"shows a push when it commits", "Transactor: other callers see a transaction's changes once it has committed", transactionCommits},
		{"is not overtaken by a later push", ruleCommitted, transactionPush},
		{"an urgent push merges by Earliest", ruleUrgent, transactionUrgent},
		{"tags are with what is pushed and settled", ruleTags, transactionTags},
		{"keeps the backoff of a job put back", "RULES 2: a new push meets a queued job, whose PerformAt and RetryCount stay", transactionPutBack},
		{"ends the wait of an awaiting job by a push", ruleAwait, transactionAwaiting},
		{"ends the wait by a push that began before the job", ruleAwait, transactionAwaitingEarlier},
		{"ends the wait by such a push in a queue with a merge rule", ruleAwait, func(e *env) {
			e.by(core.MergeRule{Stays: core.Highest, Keep: 10})
			transactionAwaitingEarlier(e)
		}},
		{"is not overtaken behind a long inbox", ruleCommitted, transactionLong},
		{"does not stop other ids with a long inbox", "Turn: due jobs in order of (PerformAt, id)", transactionLongBeside},
		{"runs an id that is pushed without end", "Turn: due jobs in order of (PerformAt, id)", transactionWithoutEnd},
		{"puts a job back once", "RULES 2, Earliest: the sooner PerformAt wins", transactionPutBackOnce},
		{"merges by the queue's rule", ruleMerge, transactionMerges},
		{"locks a job that it settles", "Turn: a settlement whose job a caller's transaction has locked is reported as deferred, and changes nothing", transactionLocks},
		{"removes a payload when it commits", "SettlePayload: while a transaction that has settled a payload is open, the job can't be reached", transactionPayload},
		{"settles one payload of a job", "SettlePayload: in the transaction that has settled a payload, the job counts as not claimed", transactionTwoPayloads},
	}
}

// within calls a function with a transaction and then commits the transaction.
func (e *env) within(do func(tx Transaction) error) {
	e.tb.Helper()
	tx := e.begin()
	e.must(do(tx), "a call in a transaction")
	e.must(tx.Commit(e.ctx), "Commit")
}

func (e *env) begin() Transaction {
	e.tb.Helper()
	tx, err := e.store.(Transactor).Begin(e.ctx)
	e.must(err, "Begin")
	return tx
}

// pushWithin pushes to orders in a transaction.
func (e *env) pushWithin(entries ...core.Entry) {
	e.tb.Helper()
	e.within(func(tx Transaction) error {
		_, err := tx.Push(e.ctx, e.pushRequest(orders, entries...))
		return err
	})
}

func (e *env) settleWithin(settle ...core.Settlement) {
	e.tb.Helper()
	e.within(func(tx Transaction) error { return tx.Settle(e.ctx, e.shard, settle) })
}

func transactionCommits(e *env) {
	tx := e.begin()
	_, err := tx.Push(e.ctx, e.pushRequest(orders, entry("a", "p", 1)))
	e.must(err, "Push in a transaction")
	h := e.acquire("n1")
	e.same("the claims before it commits", h.claim(1), nil)
	e.must(tx.Commit(e.ctx), "Commit")
	e.same("the claims after it has committed", ids(h.claim(1)), []string{"a"})
}

func transactionPush(e *env) {
	h := e.acquire("n1")
	e.pushWithin(entry("a", "first", 1))
	e.push(entry("a", "second", 2))
	e.same("the payloads", h.one().Payloads, []core.Payload{pay("first", 1), pay("second", 2)})
}

func transactionPutBack(e *env) {
	e.push(entry("a", "first", 1))
	h := e.acquire("n1")
	e.settleWithin(failed(h.one(), "boom", time.Minute))
	e.push(entry("a", "second", 2))
	e.same("the claims during its backoff", h.claim(1), nil)
	e.same("the queued job", e.queued("a"), core.Job{
		ID:       "a",
		State:    core.State{PerformAt: e.now().Add(time.Minute), FirstPush: start, Error: "boom"},
		Payloads: []core.Payload{pay("first", 1), pay("second", 2)},
	})
}

// transactionAwaitingEarlier lets an awaiting job meet a push of a transaction. The transaction
// began before the job was pushed, and commits while the job is claimed.
func transactionAwaitingEarlier(e *env) {
	tx := e.begin()
	_, err := tx.Push(e.ctx, e.pushRequest(orders, entry("a", "q", 2)))
	e.must(err, "Push in a transaction")
	e.clock.Advance(time.Second)
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	e.clock.Advance(time.Second)
	e.must(tx.Commit(e.ctx), "Commit")
	h.settle(awaiting(c, time.Hour))
	e.same("the payloads of the next claim", payloadsByID(h.claim(1)), map[string]int{"a": 2})
}

// transactionAwaiting lets three jobs await a push. The first meets the push of a transaction that
// has committed, the second meets a direct push, and the third meets no push.
func transactionAwaiting(e *env) {
	e.push(entryAt("a", "p", 1, 1), entryAt("a", "q", 2, 1), entryAt("b", "p", 1, 2), entryAt("b", "q", 2, 2), entryAt("c", "p", 1, 3))
	h := e.acquire("n1")
	claims := h.claim(3)
	e.clock.Advance(time.Second)
	e.pushWithin(entry("a", "r", 3))
	e.push(entry("b", "r", 3))
	for _, c := range claims {
		e.settleWithin(awaiting(c, time.Hour))
	}
	want := map[string]core.Instant{"a": e.now(), "b": e.now(), "c": e.now().Add(time.Hour)}
	got := map[string]core.Instant{}
	for id := range want {
		got[id] = e.queued(id).PerformAt
	}
	e.same("when the jobs run", got, want)
	e.same("the payloads of those that run now", payloadsByID(h.claim(3)), map[string]int{"a": 3, "b": 3})
}

func payloadsByID(claims []core.Claim) map[string]int {
	n := map[string]int{}
	for _, c := range claims {
		n[c.ID] = len(c.Payloads)
	}
	return n
}

// longInbox is a number of entries that transactions have pushed. No turn merges that many.
const longInbox = 12_000

// fillInbox pushes longInbox entries in a transaction, each for an id of its own.
func (e *env) fillInbox() {
	e.tb.Helper()
	entries := make([]core.Entry, longInbox)
	for i := range entries {
		entries[i] = entryAt(fmt.Sprintf("other-%05d", i), "p", 1, e.now().Add(time.Hour))
	}
	e.pushWithin(entries...)
}

func transactionMerges(e *env) {
	e.by(core.MergeRule{Stays: core.Highest, Keep: 2})
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("b", "p", 9))
	h := e.acquire("n1")
	claims := h.claim(2)
	e.pushWithin(entry("a", "r", 3), entry("b", "p", 5), entry("c", "p", 1), entry("c", "q", 3), entry("c", "r", 2), entry("c", "q", 4))
	e.settleWithin(untouched(claims[0]), buried(claims[1], "no use"))
	e.push(entry("c", "s", 5))
	e.same("what is put back", e.queued("a").Payloads, []core.Payload{pay("q", 2), pay("r", 3)})
	e.same("what is pushed", e.queued("c").Payloads, []core.Payload{pay("q", 4), pay("s", 5)})
	e.same("what is pushed beside a claim", e.queued("b").Payloads, []core.Payload{pay("p", 5)})
	e.byRefs(e.store.Revive, whole("b"))
	e.same("what is revived", e.queued("b").Payloads, []core.Payload{pay("p", 9)})
}

func transactionLong(e *env) {
	e.push(entry("put back", "first", 1))
	h := e.acquire("n1")
	c := h.one()
	e.fillInbox()
	e.settleWithin(untouched(c))
	e.pushWithin(entry("pushed", "first", 1))
	e.push(entry("put back", "second", 2), entry("pushed", "second", 2), entry("several", "p", 1), entry("several", "q", 2))
	seen := map[string][]core.Payload{}
	for range longInbox { // many more turns than any store needs
		for _, c := range h.claim(core.MaxTurnJobs) {
			seen[c.ID] = c.Payloads
		}
		if len(seen) == 3 {
			break
		}
	}
	both := []core.Payload{pay("first", 1), pay("second", 2)}
	e.same("the claimed payloads", seen, map[string][]core.Payload{
		"put back": both, "pushed": both, "several": {pay("p", 1), pay("q", 2)},
	})
}

func transactionLongBeside(e *env) {
	h := e.acquire("n1")
	e.fillInbox()
	e.pushWithin(entry("a", "first", 1))
	e.push(entry("a", "second", 2), entry("b", "p", 1), entry("c", "p", 1), entry("c", "q", 2))
	claims := h.claim(core.MaxTurnJobs)
	found := map[string]bool{}
	for _, c := range claims {
		found[c.ID] = true
	}
	e.same("whether the first turn claimed what is not in the inbox", []bool{found["b"], found["c"]}, []bool{true, true})
}

func transactionLocks(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	tx := e.begin()
	e.must(tx.Settle(e.ctx, e.shard, []core.Settlement{done(claims[0])}), "Settle in a transaction")
	reply := h.settle(done(claims[0]), done(claims[1]))
	e.reported("the deferred settlements", reply.Deferred, []int{0})
	e.reported("the skipped settlements", reply.Skipped, nil)
	e.must(tx.Commit(e.ctx), "Commit")
	e.reported("the skipped settlements once it has committed", h.settle(done(claims[0])).Skipped, []int{0})
	e.countsMatch(orders, 2, 0)
}

// transactionWithoutEnd lets transactions push for one id, one after another without end. Meanwhile
// a holder makes turns, which must claim the id again and again.
func transactionWithoutEnd(e *env) {
	const claims, pushers, turns = 10, 2, 200
	h := e.acquire("n1")
	var pushing sync.WaitGroup
	pushed, stop := make(chan struct{}), make(chan struct{})
	within := e.store.(Transactor)
	for i := range pushers {
		pushing.Go(func() {
			for n := 0; ; n++ {
				e.pushOne(within, entry("hot", fmt.Sprint(i, n), float64(n)))
				select {
				case pushed <- struct{}{}:
				case <-stop:
					return
				default:
				}
			}
		})
	}
	defer pushing.Wait() // also if a turn fails, since no goroutine may report after the case has ended
	defer close(stop)
	claimed := 0
	var settle []core.Settlement
	for n := 0; n < turns && claimed < claims; n++ {
		<-pushed // otherwise a turn may find nothing
		reply := h.turn(1, settle...)
		settle = settleAll(reply.Claims, done)
		claimed += len(reply.Claims)
	}
	e.same("how often the id was claimed", claimed, claims)
}

// pushOne pushes an entry to orders in a transaction. It may be called from any goroutine.
func (e *env) pushOne(s Transactor, en core.Entry) {
	tx, err := s.Begin(e.ctx)
	if !e.check(err, "Begin") {
		return
	}
	_, err = tx.Push(e.ctx, e.pushRequest(orders, en))
	if e.check(err, "Push in a transaction") {
		e.check(tx.Commit(e.ctx), "Commit")
	}
}

// transactionPutBackOnce lets a transaction push for other ids and put back a job with many
// payloads: together enough for a store to merge them in parts. Between two parts it pushes for the
// job.
func transactionPutBackOnce(e *env) {
	const payloads, before = 900, 500
	entries := make([]core.Entry, payloads)
	for i := range entries {
		entries[i] = entry("a", fmt.Sprint(i), float64(i))
	}
	e.push(entries...)
	h := e.acquire("n1")
	c := h.one()
	tx := e.begin()
	for i := range before {
		entries[i] = entryAt(fmt.Sprintf("other-%05d", i), "p", 1, e.now().Add(time.Hour))
	}
	_, err := tx.Push(e.ctx, e.pushRequest(orders, entries[:before]...))
	e.must(err, "Push in a transaction")
	e.must(tx.Settle(e.ctx, e.shard, []core.Settlement{snoozed(c, time.Hour)}), "Settle in a transaction")
	e.must(tx.Commit(e.ctx), "Commit")
	h.turn(0)
	e.pushBy(core.PushRule{Kind: core.Earliest}, entry("a", "now", payloads))
	e.same("what is claimed after the push", h.served().ID, "a")
}
