package conformance

import (
	"context"
	"slices"
	"sync"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// transacted is the memory store with transactions, which do what they were told when
// they commit. The claims that they settle are held until then.
type transacted struct {
	*memory.Store
	mu   *sync.Mutex
	held map[claimRef]bool
}

func withTransactions(s *memory.Store) transacted {
	return transacted{Store: s, mu: &sync.Mutex{}, held: map[claimRef]bool{}}
}

// open is another handle on the backend.
func (s transacted) open() transacted {
	s.Store = s.Store.Open()
	return s
}

func (s transacted) Begin(context.Context) (Transaction, error) { return &memoryTx{transacted: s}, nil }

func (s transacted) holds(x core.Settlement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[claimRef{x.ID, x.Receipt}]
}

func (s transacted) hold(settle []core.Settlement, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range settle {
		s.held[claimRef{x.ID, x.Receipt}] = held
	}
}

// Turn keeps back what a transaction holds.
func (s transacted) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	var sent, held []int
	all := r.Settlements
	r.Settlements = nil
	for i, x := range all {
		if s.holds(x) {
			held = append(held, i)
			continue
		}
		sent, r.Settlements = append(sent, i), append(r.Settlements, x)
	}
	reply, err := s.Store.Turn(ctx, r)
	for i, position := range reply.Skipped {
		reply.Skipped[i] = sent[position]
	}
	reply.Deferred = slices.Clip(held)
	return reply, err
}

// memoryTx keeps what a transaction does until it commits.
type memoryTx struct {
	transacted
	pushes  []ports.PushRequest
	shard   core.Shard
	settled []core.Settlement
}

func (tx *memoryTx) Push(_ context.Context, r ports.PushRequest) (ports.PushReply, error) {
	tx.pushes = append(tx.pushes, r)
	return ports.PushReply{}, nil
}

func (tx *memoryTx) Settle(_ context.Context, shard core.Shard, settle []core.Settlement) error {
	tx.shard, tx.settled = shard, append(tx.settled, settle...)
	tx.hold(settle, true)
	return nil
}

func (tx *memoryTx) Commit(ctx context.Context) error {
	defer tx.hold(tx.settled, false)
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

type claimRef struct {
	id   string
	mark core.Receipt
}
