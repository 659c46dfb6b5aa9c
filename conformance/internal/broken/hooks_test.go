package broken

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// full is a store with every optional interface.
type full interface {
	interceptable
	env.Transactor
	env.Severer
	env.Damager
}

// interceptable is the part of a full store that storekit.Intercept passes on.
type interceptable interface {
	ports.ShardStore
	ports.Notifier
	ports.Settler
	ports.TurnLimiter
}

// wrapped is the memory store, broken by a wrapper around its one handle.
func wrapped(wrap func(full) full) env.Factory {
	return func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		store := wrap(withTransactions(clock))
		return func() ports.ShardStore { return store }
	}
}

// limited is a store whose MaxTurns calls turns.
type limited struct {
	full
	turns func() int
}

func (l limited) MaxTurns() int { return l.turns() }

func wantsFewerThanNone(s full) full { return limited{s, func() int { return -1 }} }

// wantsMoreEachTime returns another limit at each call.
func wantsMoreEachTime(s full) full {
	turns := 0
	return limited{s, func() int { turns++; return turns }}
}

// replace returns a store whose method with the given name is do.
func replace[Q, A any](s full, method string, do func(context.Context, Q) (A, error)) full {
	return intercept(s, method, func(ctx context.Context, call storekit.Call) (err error) {
		*call.Reply.(*A), err = do(ctx, *call.Request.(*Q))
		return err
	})
}

// replaceErr is replace for a method that returns nothing but an error.
func replaceErr[Q any](s full, method string, do func(context.Context, Q) error) full {
	return intercept(s, method, func(ctx context.Context, call storekit.Call) error {
		return do(ctx, *call.Request.(*Q))
	})
}

func intercept(s full, method string, do func(context.Context, storekit.Call) error) full {
	return struct {
		interceptable
		env.Transactor
		env.Severer
		env.Damager
	}{storekit.Intercept(s, func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if call.Method == method {
			return do(ctx, call)
		}
		return next(ctx)
	}).(interceptable), s, s, s}
}

// afterwards calls do after each successful call of a method that returns nothing but an error.
func afterwards[Q any](s full, method string, do func(Q)) full {
	return intercept(s, method, func(ctx context.Context, call storekit.Call) error {
		err := call.On(ctx, s)
		if err == nil {
			do(*call.Request.(*Q))
		}
		return err
	})
}
