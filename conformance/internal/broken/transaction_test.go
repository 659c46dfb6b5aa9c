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

// pausesLate lets turns of a paused queue claim once a turn has claimed a job.
func pausesLate(s full) full {
	busy := false
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		queue := r.Lease.Shard.Queue
		queues, err := s.Queues(ctx)
		at := slices.IndexFunc(queues, func(q ports.Queue) bool { return q.Name == queue })
		if err == nil && busy && queues[at].Paused {
			_ = s.Resume(ctx, queue)
			defer func() { _ = s.Pause(ctx, queue) }()
		}
		reply, err := s.Turn(ctx, r)
		busy = busy || len(reply.Claims) > 0
		return reply, err
	})
}

// losesOldPutBacks delays jobs that are put back with their time by a day, like a store that
// searches only for jobs that are due later than the last claimed one.
func losesOldPutBacks(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			if r.Settlements[i].PutBack.SameTime {
				r.Settlements[i].PutBack.SameTime, r.Settlements[i].PutBack.Delay = false, 24*time.Hour
			}
		}
	})
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
