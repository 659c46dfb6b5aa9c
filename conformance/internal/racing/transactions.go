package racing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// transactionsInOrder lets each client push for one id, alternately in a transaction and directly.
// Meanwhile turns claim the jobs, and settle them as done or put back, in a turn or in a
// transaction. The first payload of some claims is settled before that, in a transaction of its
// own.
func transactionsInOrder(e *env.Env) {
	const clients, each = 5, 40

	h := e.Acquire("n1")
	stop := make(chan struct{})
	handled := make(chan map[string][]float64)
	go func() {
		w := &transacting{Holder: *h, handled: map[string][]float64{}}
		w.Env = e.With(e.Open())
		handled <- w.work(stop)
	}()

	race(e, func(i int, store ports.ShardStore) {
		if i >= clients {
			return
		}
		client := e.With(store)
		for n := range each {
			pushAlternating(client, fmt.Sprint("id-", i), n)
		}
	})

	close(stop)
	got := <-handled
	for i := range clients {
		want := make([]float64, each)
		for n := range want {
			want[n] = float64(n)
		}
		e.Same(fmt.Sprintf("the scores of id-%d, in the order in which they were done", i),
			got[fmt.Sprint("id-", i)], want)
	}
}

// pushAlternating pushes the n-th payload of an id, every second one in a transaction.
func pushAlternating(e *env.Env, id string, n int) {
	r := e.PushRequest(env.Orders, env.Entry(id, fmt.Sprint(n), float64(n)))
	if n%2 == 1 {
		_, err := e.Store.Push(e.Ctx, r)
		e.Check(err, "a racing Push")
		return
	}

	tx, err := e.Store.(env.Transactor).Begin(e.Ctx)
	if !e.Check(err, "Begin") {
		return
	}

	_, err = tx.Push(e.Ctx, r)
	if e.Check(err, "a racing Push in a transaction") {
		e.Check(tx.Commit(e.Ctx), "Commit")
	}
}

// transacting is a holder that settles its jobs in turns and in transactions.
type transacting struct {
	env.Holder
	// handled has the scores of each id, in the order in which they were done.
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

		reply, err := w.Env.Store.Turn(w.Env.Ctx, w.Request(3, settle...))
		if !w.Env.Check(err, "a racing Turn") || stopped && len(reply.Claims) == 0 && !reply.Head.OK {
			return w.handled
		}

		w.Number, settle = reply.Last, nil
		for _, c := range reply.Claims {
			n++
			if n%3 == 0 && len(c.Payloads) > 1 {
				c = w.settleFirst(c)
			}
			s := w.end(c, n%5)
			if n%2 == 0 {
				w.transact(s)
			} else {
				settle = append(settle, s)
			}
		}
	}
}

// settleFirst settles the first payload of a claim in a transaction, and returns what is left.
func (w *transacting) settleFirst(c core.Claim) core.Claim {
	tx, err := w.Env.Store.(env.Transactor).Begin(w.Env.Ctx)
	if !w.Env.Check(err, "Begin") {
		return c
	}

	s := c.SettlePayload(0)
	if !w.Env.Check(tx.SettlePayload(w.Env.Ctx, w.Env.Shard, s), "a racing SettlePayload in a transaction") ||
		!w.Env.Check(tx.Commit(w.Env.Ctx), "Commit") {
		return c
	}

	w.handled[c.ID] = append(w.handled[c.ID], c.Payloads[0].Score)
	left, _ := s.Apply(c)
	return left
}

// end returns the settlement of a claim. Kinds 0 and 1 put it back.
func (w *transacting) end(c core.Claim, kind int) core.Settlement {
	switch kind {
	case 0:
		return env.Failed(c, "boom", 0)
	case 1:
		return env.Untouched(c)
	}
	for _, p := range c.Payloads {
		w.handled[c.ID] = append(w.handled[c.ID], p.Score)
	}
	return env.Done(c)
}

func (w *transacting) transact(s core.Settlement) {
	tx, err := w.Env.Store.(env.Transactor).Begin(w.Env.Ctx)
	if !w.Env.Check(err, "Begin") {
		return
	}
	if w.Env.Check(tx.Settle(w.Env.Ctx, w.Env.Shard, []core.Settlement{s}), "a racing Settle in a transaction") {
		w.Env.Check(tx.Commit(w.Env.Ctx), "Commit")
	}
}

// dayOfTransactions is a working day. Producers push alternately in a transaction and directly, and
// workers settle some jobs in transactions. Other goroutines find single ids and edit their dead
// letters. They also do so at the end of each hour, when no turn merges what transactions have
// left.
func dayOfTransactions(e *env.Env) {
	e.Declare(dayQueue, dayShards)
	d := &day{e: e, audit: newAudit(e), transacts: true}

	var people []func(hour int)
	for _, kind := range kindsOfIDs {
		p := &transactingProducer{day: d, store: e.Open(), kind: kind}
		people = append(people, p.produce)
	}

	var atEnd []func(hour int)
	for n := range 3 {
		store, random := e.Open(), rand.New(rand.NewPCG(3, uint64(n)))
		look := func(int) { d.lookAtIDs(store, random) }
		people, atEnd = append(people, look), append(atEnd, look)
	}

	d.work(people, atEnd)
}

// transactingProducer pushes for the ids of a kind. No other goroutine pushes for them.
type transactingProducer struct {
	*day
	store ports.ShardStore
	kind  string
	// open is a transaction that pushed in the hour before and has not committed, or nil.
	open env.Transaction
}

// produce pushes in a transaction each second hour, and directly in the others. Some of the
// transactions stay open for an hour, but not those of plain ids, whose order is checked.
func (p *transactingProducer) produce(hour int) {
	if p.open != nil {
		p.commit(p.open, hour-1)
		p.open = nil
	}

	if hour%2 == 1 {
		p.day.produce(p.store, p.kind, hour)
		return
	}

	tx, err := p.begin(p.store)
	if !p.e.Check(err, "Begin") {
		return
	}
	for _, id := range idsOfKind(p.kind) {
		_, err := tx.Push(p.e.Ctx, p.e.PushRequest(dayQueue, env.Entry(id, strconv.Itoa(hour), float64(hour))))
		p.e.Check(err, "Push in a transaction")
	}

	if p.kind != plainID && hour%4 == 0 && hour < dayHours-2 {
		p.open = tx
		return
	}
	p.commit(tx, hour)
}

// begin begins a transaction. The day's workers run in goroutines of their own, where a panic
// would end all cases.
func (d *day) begin(store ports.ShardStore) (env.Transaction, error) {
	transactor, ok := store.(env.Transactor)
	if !ok {
		return nil, errors.New("the store no longer has transactions")
	}
	return transactor.Begin(d.e.Ctx)
}

// commit commits a transaction that has pushed in an hour.
func (p *transactingProducer) commit(tx env.Transaction, hour int) {
	if !p.e.Check(tx.Commit(p.e.Ctx), "Commit") {
		return
	}
	for _, id := range idsOfKind(p.kind) {
		p.audit.accepted(id, strconv.Itoa(hour), false)
	}
}

// settleApart settles some claims, each in a transaction of its own. It leaves a claim that another
// lease has taken over to the turn, which skips it.
func (w *worker) settleApart(s *leaseState) {
	var left []core.Claim
	for _, c := range s.claims {
		if w.rand.IntN(3) > 0 ||
			!w.transact(s.lease.Shard, w.settle(&leaseState{
				lease:   s.lease,
				claims:  []core.Claim{c},
				cancels: s.cancels,
			})) {
			left = append(left, c)
		}
	}
	s.claims = left
}

// transact settles in a transaction, and reports whether it did.
func (w *worker) transact(at core.Shard, settle []core.Settlement) bool {
	tx, err := w.begin(w.store)
	if !w.e.Check(err, "Begin") {
		return false
	}

	refused := tx.Settle(w.e.Ctx, at, settle)
	err = tx.Commit(w.e.Ctx)
	if refused != nil {
		err = refused
	}

	if errors.Is(err, ports.ErrLeaseLost) || !w.e.Check(err, "Settle in a transaction") {
		return false
	}

	w.audit.settledApart(settle)
	return true
}

func (a *audit) settledApart(settle []core.Settlement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.apart = append(a.apart, settle...)
}

// lookAtIDs finds some ids. If an id has a dead letter, it replaces the first payload by itself.
func (d *day) lookAtIDs(store ports.ShardStore, random *rand.Rand) {
	for range dayIDs {
		id := idsOfKind(kindsOfIDs[random.IntN(len(kindsOfIDs))])[random.IntN(dayIDs)]
		found, err := store.Find(d.e.Ctx, ports.FindRequest{Queue: dayQueue, ID: id, Payloads: 1000})
		if !d.e.Check(err, "a racing Find") || found.DeadLetter == nil {
			continue
		}
		data := found.DeadLetter.Payloads[0].Data
		_, err = store.Edit(d.e.Ctx, ports.EditRequest{Shard: found.Shard, ID: id, Old: data, New: data})
		d.e.Check(err, "a racing Edit")
	}
}
