package conformance

import (
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// transactionsInOrder has each client push for one id, alternately in a transaction and directly,
// during turns whose claims are settled in the turn or in a transaction, done or put back.
func transactionsInOrder(e *env) {
	const clients, each = 5, 40
	h := e.acquire("n1")
	stop := make(chan struct{})
	handled := make(chan map[string][]float64)
	go func() {
		w := &transacting{holder: *h, handled: map[string][]float64{}}
		w.e = e.with(e.open())
		handled <- w.work(stop)
	}()
	e.race(func(i int, store ports.ShardStore) {
		if i >= clients {
			return
		}
		client := e.with(store)
		for n := range each {
			client.pushAlternating(fmt.Sprint("id-", i), n)
		}
	})
	close(stop)
	got := <-handled
	for i := range clients {
		want := make([]float64, each)
		for n := range want {
			want[n] = float64(n)
		}
		e.same(fmt.Sprintf("the scores that were done for id %d, in order", i), got[fmt.Sprint("id-", i)], want)
	}
}

// pushAlternating pushes the n-th payload of an id, every second one in a transaction.
func (e *env) pushAlternating(id string, n int) {
	r := e.pushRequest(orders, entry(id, fmt.Sprint(n), float64(n)))
	if n%2 == 1 {
		_, err := e.store.Push(e.ctx, r)
		e.check(err, "a racing Push")
		return
	}
	tx, err := e.store.(Transactor).Begin(e.ctx)
	if !e.check(err, "Begin") {
		return
	}
	_, err = tx.Push(e.ctx, r)
	if e.check(err, "a racing Push in a transaction") {
		e.check(tx.Commit(e.ctx), "Commit")
	}
}

// transacting is a holder that settles its jobs in turns and in transactions.
type transacting struct {
	holder
	// handled are the scores that were done for each id, in order.
	handled map[string][]float64
}

// work makes turns until stop is closed and nothing is left.
func (w *transacting) work(stop <-chan struct{}) map[string][]float64 {
	var settle []core.Settlement
	for n := 0; ; {
		stopped := false
		select {
		case <-stop:
			stopped = true
		default:
		}
		reply, err := w.e.store.Turn(w.e.ctx, w.request(3, settle...))
		if !w.e.check(err, "a racing Turn") || stopped && len(reply.Claims) == 0 && !reply.Head.OK {
			return w.handled
		}
		w.number, settle = reply.Last, nil
		for _, c := range reply.Claims {
			n++
			s := w.end(c, n%5)
			if n%2 == 0 {
				w.transact(s)
			} else {
				settle = append(settle, s)
			}
		}
	}
}

// end returns the settlement of a claim; kind 0 and 1 put it back.
func (w *transacting) end(c core.Claim, kind int) core.Settlement {
	switch kind {
	case 0:
		return failed(c, "boom", 0)
	case 1:
		return untouched(c)
	}
	for _, p := range c.Payloads {
		w.handled[c.ID] = append(w.handled[c.ID], p.Score)
	}
	return done(c)
}

func (w *transacting) transact(s core.Settlement) {
	tx, err := w.e.store.(Transactor).Begin(w.e.ctx)
	if !w.e.check(err, "Begin") {
		return
	}
	if w.e.check(tx.Settle(w.e.ctx, w.e.shard, []core.Settlement{s}), "a racing Settle in a transaction") {
		w.e.check(tx.Commit(w.e.ctx), "Commit")
	}
}
