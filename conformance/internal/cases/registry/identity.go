package registry

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
)

const ruleStoreID = "StoreID returns the id of the store, the same for all handles; " +
	"it changes only by SetStoreID, and while the store has no queue"

func identityCases() []env.Case {
	return []env.Case{
		{Name: "has an id that stays", Rule: ruleStoreID, Check: identityStays},
		{
			Name:  "is another one for each store",
			Rule:  "StoreID: the store draws it at random when it is created",
			Check: identityDiffers,
		},
		{
			Name:  "is one for callers that create the store at once",
			Rule:  "StoreID: concurrent calls that create the store agree on one id",
			Check: identityRaced,
		},
		{
			Name:  "is replaced by an operator",
			Rule:  "SetStoreID replaces the id of the store; a repeated call changes nothing more",
			Check: identityReplaced,
		},
		{
			Name:  "refuses a bad id",
			Rule:  "SetStoreID: ErrInvalidRequest, as ValidateStoreID returns it",
			Check: identityInvalid,
		},
	}
}

// storeID returns the id of a store that has one.
func storeID(e *env.Env, store ports.ShardStore) string {
	e.TB.Helper()
	id, err := store.StoreID(e.Ctx)
	e.Must(err, "StoreID")
	if err := ports.ValidateStoreID(id); err != nil {
		e.Errorf("the store has the id %q, want one that is valid: %v", id, err)
	}
	return id
}

func identityStays(e *env.Env) {
	id := storeID(e, e.Store)
	e.Same("the id by another handle", storeID(e, e.Open()), id)

	e.Declare("mail", 2)
	announce(e, ports.Node{Owner: "1"})
	e.PushIDs("a")
	h := e.Acquire("n1")
	h.Settle(env.Done(h.One()))
	h.Release()

	e.Forget()
	e.Clock.Advance(time.Hour)
	e.Declare(env.Orders, 1)

	e.Same("the id after some work", storeID(e, e.Store), id)
}

func identityDiffers(e *env.Env) {
	other := e.Another()()
	_, err := other.Declare(e.Ctx, ports.DeclareRequest{Queue: env.Orders, Shards: 1})
	e.Must(err, "Declare in another store")
	if id := storeID(e, e.Store); id == storeID(e, other) {
		e.Errorf("two stores have the id %q", id)
	}
}

func identityRaced(e *env.Env) {
	const callers = 8
	open := e.Another()

	var ids, want [callers]string
	var errs [callers]error
	var all sync.WaitGroup

	for n := range callers {
		store := open()
		all.Go(func() {
			_, err := store.Declare(e.Ctx, ports.DeclareRequest{Queue: fmt.Sprint("queue-", n%2), Shards: 1})
			if err == nil {
				ids[n], err = store.StoreID(e.Ctx)
			}
			errs[n] = err
		})
	}
	all.Wait()

	e.Must(errors.Join(errs[:]...), "Declare or StoreID by one of many callers")
	id := storeID(e, open())
	for n := range want {
		want[n] = id
	}
	e.Same("the ids that the callers have found", ids, want)
}

func identityReplaced(e *env.Env) {
	first := storeID(e, e.Store)
	other := e.Open()

	for _, id := range []string{"é \n1", strings.Repeat("i", ports.MaxStoreID), first} {
		for range 2 {
			e.Must(other.SetStoreID(e.Ctx, id), "SetStoreID")
			e.Same("the id that was set", storeID(e, e.Store), id)
		}
		e.Declare("mail", 1)
		e.Same("the id after another declaration", storeID(e, other), id)
	}

	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	e.Same("the number of queues", len(queues), 2)
}

func identityInvalid(e *env.Env) {
	id := storeID(e, e.Store)
	for _, bad := range []string{"", "\xff", "a\x00", strings.Repeat("i", ports.MaxStoreID+1)} {
		e.Refused(fmt.Sprintf("SetStoreID of %.20q", bad), e.Store.SetStoreID(e.Ctx, bad), ports.ErrInvalidRequest)
	}
	e.Same("the id after it", storeID(e, e.Store), id)
}
