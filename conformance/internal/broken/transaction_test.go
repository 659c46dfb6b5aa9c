package broken

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/conformance/internal/cases/transaction"
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// choosesFirst merges the entries of transactions after a turn has claimed, instead of before.
type choosesFirst struct {
	full
	left []func(context.Context) error
}

func claimsBeforeItMerges(s full) full { return &choosesFirst{full: s} }

func (s *choosesFirst) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return &leaving{Transaction: tx, store: s}, err
}

func (s *choosesFirst) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	reply, err := s.full.Turn(ctx, r)
	for _, merge := range s.left {
		_ = merge(ctx)
	}
	s.left = nil
	return reply, err
}

type leaving struct {
	env.Transaction
	store *choosesFirst
}

func (tx *leaving) Commit(context.Context) error {
	tx.store.left = append(tx.store.left, tx.Transaction.Commit)
	return nil
}

// stopsForALongInbox claims nothing in the turn after a long transaction.
func stopsForALongInbox(s full) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{r.Lease.Shard.Queue}})
		if err == nil && stats[0].Fresh > transaction.LongInbox {
			r.Want = 0
		}
	})
}

// passesOverWhatIsPushed claims nothing while transactions push.
type passesOverWhatIsPushed struct {
	full
	committed atomic.Int64
}

func starvesWhatIsPushed(s full) full { return &passesOverWhatIsPushed{full: s} }

func (s *passesOverWhatIsPushed) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return &telling{tx, &s.committed}, err
}

func (s *passesOverWhatIsPushed) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	if s.committed.Swap(0) > 0 {
		r.Want = 0
	}
	return s.full.Turn(ctx, r)
}

// telling counts commits.
type telling struct {
	env.Transaction
	committed *atomic.Int64
}

func (tx *telling) Commit(ctx context.Context) error {
	tx.committed.Add(1)
	return tx.Transaction.Commit(ctx)
}

// putsBackTwice keeps the time of a job that a push by Earliest meets, as if a transaction's
// put-back merged once more after the push.
func putsBackTwice(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		if r.Rule.Kind == core.Earliest {
			r.Rule = core.PushRule{}
		}
		return s.Push(ctx, r)
	})
}

// miscountsBesidePushes counts one fresh job too many for each retry that is claimed during a push.
func miscountsBesidePushes(s full) full {
	var pushing, onTop atomic.Int64
	h := replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		pushing.Add(1)
		defer pushing.Add(-1)
		time.Sleep(time.Millisecond) // in a bubble, so that no slow machine changes the order
		return s.Push(ctx, r)
	})

	h = replace(h, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		time.Sleep(time.Millisecond) // in a bubble, so that no slow machine changes the order
		reply, err := s.Turn(ctx, r)
		for _, c := range reply.Claims {
			if c.RetryCount >= 0 {
				onTop.Add(min(1, pushing.Load()))
			}
		}
		return reply, err
	})

	h = replace(h, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		all, err := s.Stats(ctx, r)
		for i := range all {
			all[i].Fresh += onTop.Load()
		}
		return all, err
	})

	return h
}

// failsThirdTurn fails one turn, like a server whose disk is full.
func failsThirdTurn(s full) full {
	var turns atomic.Int64
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		if turns.Add(1) == 3 {
			return ports.TurnReply{}, ports.ErrFull
		}
		return s.Turn(ctx, r)
	})
}

// findsAndLoses loses the payloads that a transaction has put back, if a reader finds their id
// before it is claimed again.
type findsAndLoses struct {
	full
	left sync.Map // ids that were put back
}

func losesWhatIsFound(s full) full { return &findsAndLoses{full: s} }

func (s *findsAndLoses) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return &notingPutBacks{Transaction: tx, store: s}, err
}

func (s *findsAndLoses) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	reply, err := s.full.Turn(ctx, r)
	for _, c := range reply.Claims {
		s.left.Delete(c.ID)
	}
	return reply, err
}

func (s *findsAndLoses) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	found, err := s.full.Find(ctx, r)
	if _, lost := s.left.LoadAndDelete(r.ID); lost && err == nil {
		_, err = s.Delete(ctx, ports.JobStep{Shard: found.Shard, IDs: []string{r.ID}})
	}
	return found, err
}

// notingPutBacks notes the ids that its settlements put back.
type notingPutBacks struct {
	env.Transaction
	store *findsAndLoses
	ids   []string
}

func (tx *notingPutBacks) Settle(ctx context.Context, at core.Shard, settle []core.Settlement) error {
	for _, x := range settle {
		if x.Rest == core.Requeue {
			tx.ids = append(tx.ids, x.ID)
		}
	}
	return tx.Transaction.Settle(ctx, at, settle)
}

func (tx *notingPutBacks) Commit(ctx context.Context) error {
	err := tx.Transaction.Commit(ctx)
	for _, id := range tx.ids {
		tx.store.left.Store(id, true)
	}
	return err
}

// settlesMore accepts several payloads of one job in a transaction.
type settlesMore struct{ full }

func (s settlesMore) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return settlingMore{tx}, err
}

type settlingMore struct{ env.Transaction }

func (tx settlingMore) SettlePayload(ctx context.Context, at core.Shard, s core.PayloadSettlement) error {
	err := tx.Transaction.SettlePayload(ctx, at, s)
	if errors.Is(err, ports.ErrLeaseLost) {
		return nil
	}
	return err
}

// settlesPayloadsAtOnce does not wait for the commit.
type settlesPayloadsAtOnce struct{ full }

func (s settlesPayloadsAtOnce) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return settlingAtOnce{tx, s.full}, err
}

type settlingAtOnce struct {
	env.Transaction
	store full
}

func (tx settlingAtOnce) SettlePayload(ctx context.Context, at core.Shard, s core.PayloadSettlement) error {
	return tx.store.SettlePayload(ctx, at, s)
}

func settlesOneByOne(s full) full {
	return replaceErr(s, "Settle", func(ctx context.Context, r storekit.SettleRequest) error {
		for _, one := range r.Settlements {
			if err := s.Settle(ctx, r.Shard, []core.Settlement{one}); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepsReceipts applies settlements with the receipt that a claim had before one of its payloads
// was settled.
func keepsReceipts(s full) full {
	parts := map[string]int64{}
	var mu sync.Mutex

	h := afterwards(s, "SettlePayload", func(r storekit.SettlePayloadRequest) {
		mu.Lock()
		defer mu.Unlock()
		parts[r.Settlement.ID] = r.Settlement.Receipt.NextPart().Number
	})

	return beforeTurn(h, func(_ context.Context, r *ports.TurnRequest) {
		mu.Lock()
		defer mu.Unlock()
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			if number, known := parts[r.Settlements[i].ID]; known {
				r.Settlements[i].Receipt.Number = number
			}
		}
	})
}

// changesPayload changes the requests of SettlePayload.
func changesPayload(s full, change func(*core.PayloadSettlement)) full {
	return replaceErr(s, "SettlePayload", func(ctx context.Context, r storekit.SettlePayloadRequest) error {
		change(&r.Settlement)
		return s.SettlePayload(ctx, r.Shard, r.Settlement)
	})
}

func settlesTheFirstPayload(s full) full {
	return changesPayload(s, func(p *core.PayloadSettlement) { p.Position = min(p.Position, 0) })
}

func keepsTheCount(s full) full {
	return changesPayload(s, func(p *core.PayloadSettlement) { p.RetryCount = max(p.RetryCount, 3) })
}

// settlesTheLastPayload ends a job with its last payload, without counting it.
func settlesTheLastPayload(s full) full {
	return replaceErr(s, "SettlePayload", func(ctx context.Context, r storekit.SettlePayloadRequest) error {
		p := &r.Settlement
		err := s.SettlePayload(ctx, r.Shard, *p)
		if errors.Is(err, ports.ErrInvalidRequest) && p.Position == 0 {
			return s.Settle(ctx, r.Shard, []core.Settlement{{ID: p.ID, Receipt: p.Receipt}})
		}
		return err
	})
}

func settlesPayloadsAgain(s full) full {
	return replaceErr(s, "SettlePayload", func(ctx context.Context, r storekit.SettlePayloadRequest) error {
		err := s.SettlePayload(ctx, r.Shard, r.Settlement)
		if errors.Is(err, ports.ErrLeaseLost) {
			return nil
		}
		return err
	})
}

// settlesPayloadsUnderTheLease refuses the payloads of jobs that an earlier lease claimed.
func settlesPayloadsUnderTheLease(s full) full {
	var token atomic.Int64

	leased := replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		if err == nil {
			token.Store(reply.Token)
		}
		return reply, err
	})

	return replaceErr(leased, "SettlePayload", func(ctx context.Context, r storekit.SettlePayloadRequest) error {
		if r.Settlement.Receipt.Token != token.Load() {
			return ports.ErrLeaseLost
		}
		return s.SettlePayload(ctx, r.Shard, r.Settlement)
	})
}
