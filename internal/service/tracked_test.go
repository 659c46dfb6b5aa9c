package service

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// A part of the store that hangs takes away none of the rows that the rest can show.
func TestTrackedIDsBesideAPartThatHangs(t *testing.T) {
	for name, hangs := range map[string]func(call storekit.Call) bool{
		"the shard of an id": func(call storekit.Call) bool {
			r, ok := call.Request.(*ports.FindRequest)
			return ok && r.ID == "id-2"
		},
		"the list of servers": func(call storekit.Call) bool { return call.Method == "Nodes" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ids = 30
				store := memory.New(memory.Options{})
				if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
					t.Fatal(err)
				}

				for n := range ids {
					id := fmt.Sprintf("id-%d", n)
					entries := []core.Entry{{ID: id, Payload: core.Payload{Data: []byte("x")}}}
					if _, err := store.Push(t.Context(), ports.PushRequest{
						Queue:      "orders",
						Shards:     1,
						Generation: 1,
						Entries:    entries,
					}); err != nil {
						t.Fatal(err)
					}
					if _, err := store.Track(t.Context(), ports.TrackRequest{Queue: "orders", ID: id}); err != nil {
						t.Fatal(err)
					}
				}

				partly := storekit.Intercept(store, func(
					ctx context.Context,
					call storekit.Call,
					next func(context.Context) error,
				) error {
					if hangs(call) {
						<-ctx.Done()
						return ctx.Err()
					}
					return next(ctx)
				})
				s, err := New(inspect.New(partly, inspect.Options{}), Options{})
				if err != nil {
					t.Fatal(err)
				}

				list, err := Tracked.Do(t.Context(), &Caller{Service: s}, "orders", &TrackedQuery{Limit: ids})
				if err != nil || len(list.Items) != ids {
					t.Fatalf("%+v, %v; want %d rows", list, err, ids)
				}

				for at := range list.Items {
					row := list.Items[at].Value()
					if hung := name == "the shard of an id" && row.ID == "id-2"; (row.Reason == Unreached) != hung {
						t.Errorf("the row of %s: %+v", row.ID, row)
					}
				}
			})
		})
	}
}
