package broken

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// transacted is the memory store with all optional interfaces: a limit of turns, transactions,
// shards that can be cut off, and records that can be damaged. A transaction pushes and settles
// when it commits. Until then the claims that it settles are locked.
type transacted struct {
	*memory.Store
	mu     *sync.Mutex
	locked map[core.ClaimRef]bool
	// severed has the shards that are cut off.
	severed *severedShards
	// set has the set-aside records. clock dates them.
	set   *quarantine
	clock func() time.Time
}

// withTransactions returns a memory store with all optional interfaces.
func withTransactions(clock func() time.Time) transacted {
	return transacted{
		Store:   memory.New(memory.Options{Clock: clock}),
		mu:      &sync.Mutex{},
		locked:  map[core.ClaimRef]bool{},
		severed: &severedShards{},
		set:     &quarantine{shards: map[core.Shard][]ports.QuarantinedRecord{}},
		clock:   clock,
	}
}

// open returns another handle on the backend.
func (s transacted) open() transacted {
	s.Store = s.Store.Open()
	return s
}

func (transacted) MaxTurns() int { return 4 }

func (s transacted) Begin(context.Context) (env.Transaction, error) {
	return &memoryTx{transacted: s}, nil
}

func (s transacted) isLocked(x core.Settlement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked[core.ClaimRef{ID: x.ID, Receipt: x.Receipt}]
}

func (s transacted) setLocked(settle []core.Settlement, locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range settle {
		s.locked[core.ClaimRef{ID: x.ID, Receipt: x.Receipt}] = locked
	}
}

// Turn defers the settlements of claims that a transaction has locked, and skips parts of them.
func (s transacted) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	var sent, deferred []int
	all := r.Settlements
	r.Settlements = nil
	for i, x := range all {
		if s.isLocked(x) {
			deferred = append(deferred, i)
			continue
		}
		sent, r.Settlements = append(sent, i), append(r.Settlements, x)
	}

	var parts, skipped []int
	ends := r.Parts
	r.Parts = nil
	for i, p := range ends {
		if s.isLocked(core.Settlement{ID: p.ID, Receipt: p.Receipt}) {
			skipped = append(skipped, i)
			continue
		}
		parts, r.Parts = append(parts, i), append(r.Parts, p)
	}

	reply, err := s.Store.Turn(ctx, r)

	// The reply numbers the settlements and parts that were sent; the caller counts all of its own.
	for _, position := range reply.SkippedParts {
		skipped = append(skipped, parts[position])
	}
	reply.SkippedParts = slices.Sorted(slices.Values(skipped))

	for i, position := range reply.Skipped {
		reply.Skipped[i] = sent[position]
	}
	for _, position := range reply.Deferred {
		deferred = append(deferred, sent[position])
	}
	reply.Deferred = slices.Sorted(slices.Values(deferred))
	return reply, err
}

// memoryTx keeps a transaction's effects until it commits.
type memoryTx struct {
	transacted
	pushes  []ports.PushRequest
	shard   core.Shard
	settled []core.Settlement
	payload *core.PayloadSettlement
}

func (tx *memoryTx) Push(_ context.Context, r ports.PushRequest) (ports.PushReply, error) {
	tx.pushes = append(tx.pushes, r)
	return ports.PushReply{}, nil
}

func (tx *memoryTx) Settle(_ context.Context, shard core.Shard, settle []core.Settlement) error {
	if tx.payload != nil {
		return fmt.Errorf("%w: the transaction has settled a payload", ports.ErrLeaseLost)
	}
	tx.shard, tx.settled = shard, append(tx.settled, settle...)
	tx.setLocked(settle, true)
	return nil
}

func (tx *memoryTx) SettlePayload(_ context.Context, shard core.Shard, s core.PayloadSettlement) error {
	if tx.payload != nil {
		return fmt.Errorf("%w: the transaction has settled another payload", ports.ErrLeaseLost)
	}
	tx.shard, tx.payload = shard, &s
	tx.setLocked(tx.locks(), true)
	return nil
}

// locks returns settlements of the claims that the transaction has locked.
func (tx *memoryTx) locks() []core.Settlement {
	if tx.payload == nil {
		return tx.settled
	}
	return append(slices.Clone(tx.settled), core.Settlement{ID: tx.payload.ID, Receipt: tx.payload.Receipt})
}

func (tx *memoryTx) Commit(ctx context.Context) error {
	defer tx.setLocked(tx.locks(), false)

	if tx.payload != nil {
		if err := tx.Store.SettlePayload(ctx, tx.shard, *tx.payload); err != nil {
			return err
		}
	}

	if len(tx.settled) > 0 {
		if err := tx.Store.Settle(ctx, tx.shard, tx.settled); err != nil {
			return err
		}
	}

	for _, r := range tx.pushes {
		if _, err := tx.Store.Push(ctx, r); err != nil {
			return err
		}
	}

	return nil
}
