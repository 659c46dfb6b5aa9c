package random

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/conformance/internal/model"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// A Forget whose first reply is lost returns ErrUnknownQueue when it is repeated. The driver must
// then declare the queue again, as after any other Forget.
func TestForgetWithoutAReply(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := harness.NewClock()
		lossy := storekit.Intercept(model.New(clock.Now),
			func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				if err := next(ctx); err != nil || call.Method != "Forget" {
					return err
				}
				return errors.New("the reply is lost")
			})

		q := ports.Queue{Name: "orders", Shards: 1}
		d := &driver{
			t:          rt,
			ctx:        t.Context(),
			clock:      clock,
			handles:    []ports.ShardStore{harness.Repeating(lossy)},
			candidates: []*model.Store{model.New(clock.Now)},
			queues:     []ports.Queue{q},
		}

		compare(d, "Declare", declaration(q), ports.ShardStore.Declare)
		d.forget()
		if ids := d.model().DeadIDs(core.Shard{Queue: "orders"}); len(ids) > 0 {
			t.Fatalf("a queue that was declared again has the dead letters %q, want none", ids)
		}
	})
}
