package engine_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ledger stands between the links of all nodes and the store, and around the handlers. So it knows
// what the store carried out and what ran, and fails the test if one does not follow from the
// other. All nodes serve the queues by the ledger's policy.
type ledger struct {
	*world
	policy core.RetryPolicy
	// queues are how many shards each queue has. An id belongs to one queue.
	queues map[string]int

	mu        sync.Mutex
	tokens    map[core.Shard]int64
	claims    map[core.ClaimRef]*claimRecord
	running   map[string]*claimRecord
	leaseRuns map[leaseKey]int
	payloads  map[payloadKey]fate
	lastDone  map[string]float64
	// left are the claims that owners have released their leases with.
	left      map[string][]core.ClaimRef
	starts    map[core.Shard]int
	processed int64
	failed    int64
	// excused is until when a lease may be over for the store before its holder knows, since the clock
	// has jumped.
	excused time.Duration
}

// claimRecord is one claim of a job, from the turn that made it to the one that settled it.
type claimRecord struct {
	core.Claim
	shard   core.Shard
	owner   string
	settled bool
	// cancelled and drop are as an operator chose.
	cancelled, drop bool
	// run is its execution, or nil.
	run *run
}

// run is one call of a handler for one job.
type run struct {
	process *process
	ctx     context.Context
	ended   bool
	outcome core.Outcome
	// interrupted is set if its context had ended when it ended.
	interrupted bool
}

// process is the process that a node runs in, which may be killed.
type process struct {
	killed      bool
	lastChances int
}

// over reports whether the execution can do nothing any more that its node would vouch for.
func (r *run) over() bool { return r == nil || r.ended || r.process.killed || r.ctx.Err() != nil }

type leaseKey struct {
	shard core.Shard
	token int64
}

type payloadKey struct{ id, data string }

// fate is what became of a payload.
type fate uint8

const (
	kept fate = iota
	done
	buried
	dropped
)

func newLedger(w *world, queues map[string]int, policy core.RetryPolicy) *ledger {
	return &ledger{
		world:     w,
		policy:    policy,
		queues:    queues,
		starts:    make(map[core.Shard]int),
		tokens:    make(map[core.Shard]int64),
		claims:    make(map[core.ClaimRef]*claimRecord),
		running:   make(map[string]*claimRecord),
		leaseRuns: make(map[leaseKey]int),
		payloads:  make(map[payloadKey]fate),
		lastDone:  make(map[string]float64),
		left:      make(map[string][]core.ClaimRef),
	}
}

// ledgerStore is the store as the links see it.
type ledgerStore struct {
	*memory.Store
	ledger *ledger
}

func (l *ledger) open() ledgerStore { return ledgerStore{l.store.Open(), l} }

func (s ledgerStore) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	reply, err := s.Store.Acquire(ctx, r)
	if err == nil {
		s.ledger.tokens[r.Shard] = reply.Token
	}
	return reply, err
}

// Turn also checks the store's effects.
func (s ledgerStore) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	reply, err := s.Store.Turn(ctx, r)
	if err != nil || reply.Repeat || reply.Last != r.Number {
		return reply, err
	}
	for i := range r.Settlements {
		if !slices.Contains(reply.Skipped, i) && !slices.Contains(reply.Deferred, i) {
			l.settle(r.Lease, &r.Settlements[i], reply.Now)
		}
	}
	for i, ref := range r.Begin {
		if !slices.Contains(reply.NotBegun, i) {
			l.claims[ref].Begun = true
		}
	}
	for _, c := range reply.Claims {
		l.claims[c.Ref()] = &claimRecord{Claim: c, shard: r.Lease.Shard, owner: r.Lease.Owner}
	}
	return reply, err
}

// Release notes the claims that a lease leaves behind.
func (s ledgerStore) Release(ctx context.Context, lease ports.Lease) error {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	err := s.Store.Release(ctx, lease)
	if err != nil {
		return err
	}
	for ref, c := range l.claims {
		if !c.settled && c.shard == lease.Shard && c.Receipt.Token == lease.Token {
			l.left[lease.Owner] = append(l.left[lease.Owner], ref)
		}
	}
	return nil
}

// push stores a payload that must be accounted for from then on.
func (l *ledger) push(queue string, entries ...core.Entry) {
	l.Helper()
	l.mu.Lock()
	for _, e := range entries {
		l.payloads[payloadKey{e.ID, string(e.Payload.Data)}] = kept
	}
	l.mu.Unlock()
	r := ports.PushRequest{Queue: queue, Shards: l.queues[queue], Generation: 1, Entries: entries}
	if _, err := l.store.Push(context.Background(), r); err != nil {
		l.Fatal(err)
	}
}

// cancel cancels the claimed jobs among ids of a queue, as an operator does.
func (l *ledger) cancel(queue string, drop bool, ids ...string) {
	l.Helper()
	byShard := make(map[int][]string)
	for _, id := range ids {
		shard := core.ShardOf(id, l.queues[queue])
		byShard[shard] = append(byShard[shard], id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for shard, all := range byShard {
		for step := range slices.Chunk(all, ports.MaxStep) {
			r := ports.CancelRequest{Shard: core.Shard{Queue: queue, Index: shard}, IDs: step, Drop: drop}
			if _, err := l.store.Cancel(context.Background(), r); err != nil {
				l.Fatal(err)
			}
		}
	}
	cancelled := make(map[string]bool, len(ids))
	for _, id := range ids {
		cancelled[id] = true
	}
	for _, c := range l.claims {
		if !c.settled && cancelled[c.ID] {
			c.cancelled, c.drop = true, c.drop || drop
		}
	}
}

// kill makes a process do nothing more that counts.
func (l *ledger) kill(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.killed = true
}
