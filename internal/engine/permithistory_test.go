package engine_test

import (
	"math/rand/v2"
	"time"

	"github.com/skeinq/skein/core"
)

// permitHistory has nodes contend for a few permits while their links fail, hang and lose replies,
// and nodes leave and come back. Handlers end with their context, so that even those of lost
// permits never run beside others.
func permitHistory(w *world, seed uint64) {
	const nodes, shards, jobs = 3, 6, 1500
	random := rand.New(rand.NewPCG(seed, 3))
	l := w.permitLedger(1 + random.IntN(5))

	start := func(i int) *node {
		return w.start(nil, serving(l.queue(i, shards, time.Duration(1+random.IntN(200))*time.Millisecond)),
			roundTrip(time.Duration(random.IntN(10))*time.Millisecond), func(s *setup) {
				s.LeaseTTL = 3 * time.Second
				s.Lanes, s.Splitter = 1+random.IntN(8), core.NodeSplitter{
					Nodes: nodes,
					Node:  i,
					Share: random.IntN(3) > 0,
				}
				s.Queues[0].Policy.MaxRecoveries, s.Queues[0].MaxLanes = 1000, random.IntN(3)
				s.noWakeups = random.IntN(2) == 0
				loses := rand.New(rand.NewPCG(seed, uint64(i)))
				s.link.lose = func(method string) bool { return method == "Permit" && loses.IntN(5) == 0 }
			})
	}

	all := make([]*node, nodes)
	for i := range all {
		all[i] = start(i)
	}

	w.sleep(2 * poll)
	w.pushEach(jobs)

	for range 200 {
		w.sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		i := random.IntN(nodes)
		switch random.IntN(20) {
		case 0:
			all[i].link.set(down)
		case 1:
			all[i].link.set(hanging)
		case 2:
			all[i].cancel()
			all[i].link.set(up)
			all[i].awaitEnd()
			all[i] = start(i)
		case 3, 4, 5, 6:
			all[i].link.set(up)
		}
	}

	for _, n := range all {
		n.link.set(up)
	}
	w.sleep(10 * time.Minute)

	if s := w.stats(); s.Fresh+s.Retrying+s.Claimed+s.Dead != 0 {
		w.Errorf("left over: %+v", s.Counts)
	}
	if l.most != l.limit {
		w.Errorf("%d batches ran at once at most, of %d that may", l.most, l.limit)
	}
	if _, holders := w.held(); len(holders) > 0 {
		w.Errorf("idle: %v", holders)
	}
}
