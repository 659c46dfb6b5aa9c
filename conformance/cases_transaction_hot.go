package conformance

import (
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// transactionWithoutEnd has transactions push for one id while a holder makes turns, one after
// another without end: the id is claimed again and again all the same.
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
	defer pushing.Wait() // also if a turn fails: nobody may report once the case has ended
	defer close(stop)
	claimed := 0
	var settle []core.Settlement
	for n := 0; n < turns && claimed < claims; n++ {
		<-pushed // or a turn may find nothing
		reply := h.turn(1, settle...)
		settle = settleAll(reply.Claims, done)
		claimed += len(reply.Claims)
	}
	e.same("how often the id was claimed", claimed, claims)
}

// pushOne pushes an entry to orders in a transaction, in another goroutine than the case's.
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

// transactionPutBackOnce has a transaction put back a job with the given number of payloads,
// behind enough other pushes for a store to merge them in parts, and a push in between.
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
