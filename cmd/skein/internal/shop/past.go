package shop

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// day is how long the shop has been open. The past is made in steps of the length step.
const (
	day  = 24 * time.Hour
	step = 10 * time.Minute
)

func dice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// past makes the shop's history. The store's clock is set back, and customers buy and servers work
// as usual. Only the durations are invented, because the jobs of the past take no time.
type past struct {
	shop   *Shop
	client *skein.Client
	dice   *rand.Rand
	number int
}

// at sets the store's clock to the given time ago.
func (p *past) at(ago time.Duration) { p.shop.behind.Store(int64(ago)) }

func (p *past) happen(ctx context.Context) error {
	if err := p.month(ctx); err != nil {
		return err
	}
	for ago := day; ago > 0; ago -= step {
		p.at(ago)
		if err := p.work(ctx, ago); err != nil {
			return err
		}
	}

	for _, trouble := range []func(context.Context) error{
		p.invoices, p.reports, p.thumbnails, p.exports, p.search, p.reminders, p.declined,
	} {
		if err := trouble(ctx); err != nil {
			return err
		}
	}

	p.at(0)
	return nil
}

// month records what the servers did on the days before the shop's past begins. Customers buy more from
// week to week, and less on Sundays.
func (p *past) month(ctx context.Context) error {
	const opened = inspect.DaysKept * day
	p.at(opened)
	if err := p.serve(ctx, opened, step); err != nil { // which declares the queues
		return err
	}

	for ago := opened; ago > day; ago -= day {
		p.at(ago)
		more := 1.3 - 0.6*float64(ago)/float64(opened)
		if time.Now().Add(-ago).Weekday() == time.Sunday {
			more *= 0.4
		}

		minute := core.InstantOf(time.Now().Add(-ago)).Minute()
		var records []ports.Record
		for queue, perDay := range map[string]float64{"orders": 115_000, "emails": 21_600, "search": 130_000} {
			records = append(records, ports.Record{
				Queue:  queue,
				Minute: minute,
				Stats:  p.dayOf(uint64(perDay * more)),
			})
		}
		if err := p.shop.store.Record(ctx, ports.RecordRequest{Owner: "past", Records: records}); err != nil {
			return err
		}
	}
	return nil
}

// dayOf returns the statistics of a day, with durations of which one stands for a thousand jobs.
func (p *past) dayOf(done uint64) core.Stats {
	const each = 1000
	s := core.Stats{Processed: done, Failed: done / 100}
	for range done / each {
		s.ObserveWait(p.about(4 * time.Millisecond))
		s.ObserveRun(p.about(20 * time.Millisecond))
	}
	for i := range core.HistogramBuckets {
		s.Wait[i] *= each
		s.Run[i] *= each
	}
	s.WaitSum, s.RunSum = s.WaitSum*each, s.RunSum*each
	s.WaitSquares, s.RunSquares = s.WaitSquares*each, s.RunSquares*each
	return s
}

// traffic returns how much customers buy at a time of the day: 1 on average, most in the evening.
func traffic(at time.Time) float64 {
	hour := float64(at.Hour()) + float64(at.Minute())/60
	return 1 + 0.6*math.Sin((hour-13)/24*2*math.Pi)
}

// work pushes what customers buy in one step, and lets a server run the jobs.
func (p *past) work(ctx context.Context, ago time.Duration) error {
	orders, emails, searches := 800, 150, 900
	more := traffic(time.Now().Add(-ago))
	q := p.shop.queues

	for _, one := range []struct {
		queue *skein.Queue[event]
		id    func() string
		count int
	}{{q.orders, p.order, orders}, {q.emails, p.customer, emails}, {q.search, p.product, searches}} {
		entries := make([]skein.Entry[event], int(float64(one.count)*more))
		for i := range entries {
			entries[i] = skein.Entry[event]{ID: one.id(), Payload: p.event("bought")}
		}
		if err := one.queue.PushMany(ctx, p.client, entries); err != nil {
			return err
		}
	}

	return p.serve(ctx, ago, step)
}

// serve lets a server run the due jobs, and records them as spread over some time.
func (p *past) serve(ctx context.Context, ago, over time.Duration) error {
	counted := counts{}
	options := skein.ServerOptions{Logger: slog.New(slog.DiscardHandler), Middleware: []skein.Middleware{counted.count}}
	server := skein.NewServer(
		storekit.Intercept(p.shop.store, withoutRecords),
		options,
		p.shop.queues.handlers(false)...,
	)
	if _, err := server.RunDue(ctx); err != nil {
		return err
	}
	return p.record(ctx, ago, over, counted)
}

// withoutRecords discards the statistics that a server records, because its jobs took no time.
func withoutRecords(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
	if call.Method == "Record" {
		return nil
	}
	return next(ctx)
}

// counts has the number of batches of each queue that succeeded, and of those that failed. A batch
// has one job.
type counts map[string]*[2]int

func (c counts) count(next skein.RunFunc) skein.RunFunc {
	return func(ctx context.Context, batch *skein.RawBatch) error {
		err := next(ctx, batch)

		one := c[batch.Queue]
		if one == nil {
			one = new([2]int)
			c[batch.Queue] = one
		}

		if err != nil {
			one[1]++
		} else {
			one[0]++
		}
		return err
	}
}

// record spreads finished jobs over the minutes of some time, with invented durations.
func (p *past) record(ctx context.Context, ago, over time.Duration, counted counts) error {
	minutes := int(over / time.Minute)
	start := core.InstantOf(time.Now().Add(-ago)).Minute()

	for queue, n := range counted {
		records := make([]ports.Record, minutes)
		for i := range records {
			s := &records[i].Stats
			records[i].Queue, records[i].Minute = queue, start.Add(time.Duration(i)*time.Minute)
			s.Processed, s.Failed = uint64(share(n[0], i, minutes)), uint64(share(n[1], i, minutes))
			for range s.Processed + s.Failed {
				s.ObserveWait(p.about(4 * time.Millisecond))
				s.ObserveRun(p.about(20 * time.Millisecond))
			}
		}

		if err := p.shop.store.Record(ctx, ports.RecordRequest{Owner: "past", Records: records}); err != nil {
			return err
		}
	}
	return nil
}

// share is the i-th of parts nearly equal parts of n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }

// about returns a random duration near a usual one. Sometimes it is much longer.
func (p *past) about(usual time.Duration) time.Duration {
	return time.Duration(float64(usual) * math.Exp(0.7*p.dice.NormFloat64()))
}

func (p *past) order() string    { return fmt.Sprintf("order-%d", 1000+p.dice.IntN(4000)) }
func (p *past) customer() string { return fmt.Sprintf("customer-%d", p.dice.IntN(3000)) }
func (p *past) product() string  { return fmt.Sprintf("product-%d", p.dice.IntN(800)) }

// event returns the next event.
func (p *past) event(what string) event {
	p.number++
	return event{Number: p.number, What: what, Cents: 100 + p.dice.IntN(20000)}
}

// push pushes events of several ids, so long ago.
func (p *past) push(
	ctx context.Context,
	ago time.Duration,
	queue *skein.Queue[event],
	what string,
	ids ...string,
) error {
	p.at(ago)
	entries := make([]skein.Entry[event], len(ids))
	for i, id := range ids {
		entries[i] = skein.Entry[event]{ID: id, Payload: p.event(what)}
	}
	return queue.PushMany(ctx, p.client, entries)
}

// begin pushes a job that never ends. A server takes it when the shop opens. The dashboard shows it
// as running since the push.
func (p *past) begin(ctx context.Context, ago time.Duration, queue *skein.Queue[event], what, id string) error {
	p.shop.edits.stuck[id] = p.shop.edits.opened.Add(-ago)
	return p.push(ctx, ago, queue, what, id)
}

// ids returns prefix-1, prefix-2 and so on.
func ids(prefix string, count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%d", prefix, i+1)
	}
	return list
}

// invoices: an operator paused the queue three hours ago.
func (p *past) invoices(ctx context.Context) error {
	const ago = 3 * time.Hour
	if err := p.push(ctx, ago, p.shop.queues.invoices, "to be sent", ids("invoice", 40)...); err != nil {
		return err
	}
	ctx = inspect.WithActor(ctx, inspect.Actor{Name: "ann", Reason: "the accounts of the month are checked"})
	return inspect.New(p.shop.store, inspect.Options{Logger: p.shop.log}).Pause(ctx, "invoices")
}

// reports: their only server died with two claimed jobs, and was not started again.
func (p *past) reports(ctx context.Context) error {
	const ago, ttl = 25 * time.Minute, 10 * time.Second
	if err := p.push(ctx, ago, p.shop.queues.reports, "asked for", ids("report", 12)...); err != nil {
		return err
	}

	node := reportsServer()
	if _, err := p.shop.store.Announce(ctx, ports.AnnounceRequest{Node: node, TTL: ttl}); err != nil {
		return err
	}

	for index := range 2 {
		lease, err := p.lease(ctx, core.Shard{Queue: "reports", Index: index}, node.Owner, ttl)
		if err != nil {
			return err
		}
		if _, err := p.shop.store.Turn(ctx, ports.TurnRequest{Lease: lease, Number: 1, TTL: ttl, Want: 1}); err != nil {
			return err
		}
	}
	return nil
}

// lease acquires a shard of an existing queue.
func (p *past) lease(ctx context.Context, shard core.Shard, owner string, ttl time.Duration) (ports.Lease, error) {
	queues, err := p.shop.store.Queues(ctx)
	if err != nil {
		return ports.Lease{}, err
	}
	i := slices.IndexFunc(queues, func(q ports.Queue) bool { return q.Name == shard.Queue })
	if i < 0 {
		return ports.Lease{}, fmt.Errorf("the store has no queue %s; it has %v", shard.Queue, queues)
	}

	acquired, err := p.shop.store.Acquire(ctx, ports.AcquireRequest{
		Shard:      shard,
		Shards:     queues[i].Shards,
		Generation: queues[i].Generation,
		Owner:      owner,
		Attempt:    1,
		TTL:        ttl,
	})
	return ports.Lease{Shard: shard, Owner: owner, Token: acquired.Token}, err
}

// declined: an order's card has been declined again and again, and has one retry left.
func (p *past) declined(ctx context.Context) error {
	const ago, ttl = 10 * time.Minute, 10 * time.Second
	q := p.shop.queues.orders
	p.at(ago)
	// The job is the first of its shard, because it was due before all others.
	if err := q.Push(ctx, p.client, declinedOrder, p.event("bought"), skein.In(-day)); err != nil {
		return err
	}

	lease, err := p.lease(ctx, core.Shard{Queue: "orders", Index: core.ShardOf(declinedOrder, 16)}, "past", ttl)
	if err != nil {
		return err
	}

	turn := ports.TurnRequest{Lease: lease, Number: 1, TTL: ttl, Want: 1}
	reply, err := p.shop.store.Turn(ctx, turn)
	if err != nil {
		return err
	}

	// After this failure the job has one retry left.
	policy := core.RetryPolicy{
		MaxRetries: skein.DefaultMaxRetries,
		Backoff:    func(int, int) time.Duration { return day },
	}
	turn.Number, turn.Want = reply.Last+1, 0
	for at := range reply.Claims {
		c := &reply.Claims[at]
		c.RetryCount = policy.MaxRetries - 2
		turn.Settlements = append(turn.Settlements, policy.Settlement(
			c,
			&core.Outcome{Kind: core.Failed, Error: orderFails(declinedOrder).Error()},
			0,
		))
	}

	if _, err = p.shop.store.Turn(ctx, turn); err != nil {
		return err
	}
	return p.shop.store.Release(ctx, lease)
}

func reportsServer() ports.Node {
	return ports.Node{
		Owner:   "reports-1",
		Name:    "reports-1",
		Host:    "reports-1.shop.example",
		PID:     71,
		Lanes:   4,
		Queues:  []string{"reports"},
		Version: "v1.4.2",
	}
}

// crashes announces the dead server of reports again every half hour, for a millisecond, because a
// store forgets a server that has been gone for an hour.
func (s *Shop) crashes(ctx context.Context) error {
	for sleep(ctx, ports.NodeKept/2) == nil {
		if _, err := s.store.Announce(ctx, ports.AnnounceRequest{
			Node: reportsServer(),
			TTL:  time.Millisecond,
		}); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// thumbnails: more jobs are pushed than the servers can run.
func (p *past) thumbnails(ctx context.Context) error {
	const minutes, come, made = 15, 170, 50
	for minute := minutes; minute > 0; minute-- {
		ago := time.Duration(minute) * time.Minute
		if err := p.push(ctx, ago, p.shop.queues.thumbnails, "uploaded",
			ids(fmt.Sprintf("image-%d", minute), made)...); err != nil {
			return err
		}
		if err := p.serve(ctx, ago, time.Minute); err != nil {
			return err
		}
	}

	// The rest is pushed only now, so that no server of the past has run it.
	for minute := minutes; minute > 0; minute-- {
		ids := ids(fmt.Sprintf("image-%d", minute), come)
		if err := p.push(ctx, time.Duration(minute)*time.Minute, p.shop.queues.thumbnails, "uploaded",
			ids[made:]...); err != nil {
			return err
		}
	}
	return nil
}

// exports: the only job that may run waits for a service that does not answer.
func (p *past) exports(ctx context.Context) error {
	if err := p.begin(ctx, 10*time.Minute, p.shop.queues.exports, "asked for", stuckExport); err != nil {
		return err
	}
	return p.push(ctx, 9*time.Minute, p.shop.queues.exports, "asked for", ids("export", 11)...)
}

// search: a job waits for a service that never answers, and the other jobs of its shard wait for
// it.
func (p *past) search(ctx context.Context) error {
	if err := p.begin(ctx, 8*time.Minute, p.shop.queues.search, "changed", stuckSearch); err != nil {
		return err
	}
	return p.push(ctx, 7*time.Minute, p.shop.queues.search, "changed", ids("product", 800)...)
}

// reminders pushes jobs that are due later.
func (p *past) reminders(ctx context.Context) error {
	entries := make([]skein.Entry[event], 60)
	for i := range entries {
		entries[i] = skein.Entry[event]{ID: fmt.Sprintf("reminder-%d", i+1), Payload: p.event("please rate us")}
		entries[i].Options = []skein.PushOption{skein.In(time.Duration(i+1) * 7 * time.Minute)}
	}
	p.at(0)
	return p.shop.queues.emails.PushMany(ctx, p.client, entries)
}
