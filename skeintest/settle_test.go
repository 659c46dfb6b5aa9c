package skeintest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

// rolledBack is a transaction that does not commit.
type rolledBack struct{}

func (rolledBack) Settle(context.Context, core.Shard, []core.Settlement) error { return nil }

func (rolledBack) SettlePayload(context.Context, core.Shard, core.PayloadSettlement) error {
	return nil
}

// Events of a job whose payloads end in transactions have the payloads that are left.
func TestEventsTellHowTransactionsOfPayloadsEnded(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{MaxRetries: 1})
	s := skeintest.New()
	for _, payload := range []string{"x", "y", "z"} {
		if err := q.Push(t.Context(), s.Client, "id", []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}

	events := s.Drain(t, time.Hour, q.Each(func(ctx context.Context, _ string, payload []byte) error {
		if string(payload) == "y" {
			return errors.Join(skein.SettleIn(ctx, rolledBack{}), errors.New("no"))
		}
		return skein.SettleIn(ctx, s)
	}))

	skeintest.AssertEvents(t, events,
		"0s q id [x y z] failed: no",
		"15s q id [y z] exhausted: no; buried [y]",
		"15s q id [z] done",
	)

	want := []time.Duration{15 * time.Second, 15 * time.Second, 0}
	for i, next := range want {
		if events[i].Next != next {
			t.Errorf("event %d: the job runs next after %v, want %v", i, events[i].Next, next)
		}
	}
}

func TestEventsTellHowTransactionsEnded(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{MaxRetries: 1})
	fault := func(s *skeintest.Store) { s.Fail(skeintest.Fault{Method: "Settle", ReplyLost: true}) }
	cases := []struct {
		name    string
		prepare func(*skeintest.Store)
		settler func(*skeintest.Store) ports.Settler
		after   error
		want    []string
	}{
		{"committed", nil, itself, nil, []string{"0s q id [x] done"}},
		{"committed, then an error", nil, itself, errors.New("late"), []string{"0s q id [x] done"}},
		{"committed, and the answer lost", fault, itself, nil, []string{"0s q id [x] done"}},
		{"rolled back", nil, func(*skeintest.Store) ports.Settler { return rolledBack{} }, nil, []string{
			"0s q id [x] failed: " + skein.ErrNotCommitted.Error(),
			"15s q id [x] exhausted: " + skein.ErrNotCommitted.Error(),
		}},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			s := skeintest.New()
			if tt.prepare != nil {
				tt.prepare(s)
			}

			if err := q.Push(t.Context(), s.Client, "id", []byte("x")); err != nil {
				t.Fatal(err)
			}
			events := s.Drain(t, time.Hour, q.Handler(func(ctx context.Context, _ string, _ [][]byte) error {
				return errors.Join(skein.SettleIn(ctx, tt.settler(s)), tt.after)
			}))
			skeintest.AssertEvents(t, events, tt.want...)
		})
	}
}

func itself(s *skeintest.Store) ports.Settler { return s }
