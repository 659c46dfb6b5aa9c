package env

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Package conformance declares the types below for its users, with what each must do. Their copies
// here have the same methods, so a store that implements one implements the other.
type (
	// Factory is conformance.Factory.
	Factory = func(t testing.TB, clock func() time.Time) (open func() ports.ShardStore)
	// Transactor is conformance.Transactor.
	Transactor interface {
		Begin(ctx context.Context) (Transaction, error)
	}
	// Severer is conformance.Severer.
	Severer interface {
		Sever(shard core.Shard) (mend func())
	}
	// Damager is conformance.Damager.
	Damager interface {
		Damage(ctx context.Context, shard core.Shard, id string, place ports.Place) error
	}
	// Transaction is conformance.Transaction. It is an alias, because the results of two Begins must
	// have one type.
	Transaction = interface {
		ports.Producer
		ports.Settler
		Commit(ctx context.Context) error
	}
)

// Probe opens a store to see which optional interfaces it implements.
func Probe(t testing.TB, f Factory) ports.ShardStore { return f(t, harness.NewClock().Now)() }

// Repeating returns a factory of handles that repeat calls of unknown outcome.
func Repeating(f Factory) Factory {
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		open := f(t, clock)
		return func() ports.ShardStore { return harness.Repeating(open()) }
	}
}
