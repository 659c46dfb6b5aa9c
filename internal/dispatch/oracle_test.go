package dispatch_test

// The oracle of the random histories: it counts anew after each event, from the histories alone.

// count is what the oracle knows of the shards of a pool that are of one queue.
type count struct{ runnable, granted int }

// running counts the lanes that run batches of a queue, or are about to.
func (s *sim) running(q *simQueue) (n int) {
	for _, l := range s.lanes {
		if l.shard != nil && l.shard.queue == q {
			n++
		}
	}
	return n
}

// mayStart is how many more lanes may run a queue.
func (s *sim) mayStart(q *simQueue) int {
	return max(0, q.most()-s.running(q))
}

// chosen counts the lanes that a shard was chosen for and that have not taken a batch.
func (s *sim) chosen(h *simShard) (n int) {
	for _, l := range s.lanes {
		if l.shard == h && !l.runs {
			n++
		}
	}
	return n
}

// done reports whether all jobs have run.
func (s *sim) done() bool {
	for _, h := range s.shards {
		if h.stored+h.claimed+h.running > 0 {
			return false
		}
	}
	return true
}

// check fails the test if a bound is exceeded, or if lanes wait while there is work for them.
func (s *sim) check() {
	for _, p := range s.pools {
		counts := make(map[*simQueue]count)
		for _, h := range s.shards {
			if h.pool == p {
				c := counts[h.queue]
				c.runnable += max(0, min(h.claimed, h.parallel-h.running)-s.chosen(h))
				c.granted += h.Granted()
				if h.inFlight && !h.failed {
					c.granted += h.want
				}
				counts[h.queue] = c
			}
		}

		var idle, waiting, woken, elsewhere int
		chosen := false
		for _, l := range s.lanes {
			switch {
			case l.pool != p && l.woken:
				elsewhere++
			case l.pool != p:
			case l.shard != nil:
				chosen = chosen || !l.runs
			default:
				idle++
				if l.waits {
					waiting++
				} else if l.woken {
					woken++
				}
			}
		}

		startable, supplied := 0, 0
		for q, c := range counts {
			startable += min(c.runnable, max(0, s.mayStart(q)-elsewhere))
			supplied += min(c.runnable+c.granted, s.mayStart(q))
		}

		if s.sees && waiting > 0 && woken < startable {
			s.Fatalf("%d lanes wait and %d are woken, although %d batches could start", waiting, woken, startable)
		}
		if s.sees && s.grants == p && s.node.Prefetch == 0 && supplied > idle {
			s.Fatalf("%d batches are runnable and granted for %d lanes", supplied, idle)
		}
		if s.sees && supplied < idle && !chosen { // else Taken follows, and grants
			s.checkGrants(p, idle-supplied)
		}
	}
}

// checkGrants fails the test if a shard has no grant although lanes would find nothing to run.
func (s *sim) checkGrants(p any, short int) {
	for _, h := range s.shards {
		claimed := 0
		for _, o := range s.shards {
			if o.queue == h.queue {
				claimed += max(0, min(o.claimed, o.parallel-o.running)-s.chosen(o)) + o.Granted()
				if o.inFlight && !o.failed {
					claimed += o.want
				}
			}
		}
		free := claimed < h.queue.most()-s.running(h.queue)
		if h.pool == p && h.stored > 0 && !h.failed && !h.inFlight && h.Granted() == 0 && h.claimed < h.parallel-h.running+16 && free {
			s.Fatalf("%d lanes would find no batch, and a shard with %d jobs has no grant", short, h.stored)
		}
	}
}
