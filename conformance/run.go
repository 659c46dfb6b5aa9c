package conformance

import (
	"slices"
	"testing"

	"github.com/skeinq/skein/conformance/internal/cases"
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/conformance/internal/faults"
	"github.com/skeinq/skein/conformance/internal/racing"
	"github.com/skeinq/skein/conformance/internal/random"
	"github.com/skeinq/skein/ports"
)

// Run tests the stores of f against the contract of package ports: the named cases, each on fresh
// backends, the worked cases of docs/rules.md, random histories compared with a model, concurrent
// handles, and calls that fail or lose their reply. f is called once for each backend. With -short,
// each call meets two of the six faults, and the largest cases are skipped.
func Run(t *testing.T, f Factory) {
	t.Helper()
	store := env.Probe(t, f)
	run(t, f, store, cases.Groups(store))
}

func run(t *testing.T, f env.Factory, store ports.ShardStore, all []env.Group) {
	t.Helper()
	for _, g := range all {
		t.Run(g.Name, func(t *testing.T) {
			for _, c := range g.Cases {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					g.Run(c, t, f)
				})
			}
		})
	}

	t.Run("random", func(t *testing.T) { random.Test(t, f) })
	t.Run("racing", func(t *testing.T) { racing.Test(t, f, store) })
	t.Run("faults", func(t *testing.T) { faults.Test(t, f) })
}

// RunDisturbed is [Run] for a backend whose connections break during the test: the program that
// started its servers cuts connections, pauses servers, or moves data. Each call of unknown outcome
// is repeated, as package ports allows, and all that [Run] checks must hold as if nothing had
// happened.
//
// The reply to a repeated call lacks some results: the skipped settlements and the begun jobs of a
// turn, the number of entries that an operator's step handled, whether a step with a limit came
// further than its first call, and what existed before. A named case or a race whose verdict
// depends on such a reply runs again from the start on a fresh backend, up to fifty times. A random
// history continues with every state that the backend may have, until its replies decide.
//
// A correct store whose calls break less than about ten times a second passes within a few tries.
// RunDisturbed leaves out the group bytes, whose calls carry 8 MiB and outlast any connection that
// breaks so often. Without any disturbance RunDisturbed is otherwise the same as Run.
func RunDisturbed(t *testing.T, f Factory) {
	t.Helper()
	repeating := env.Repeating(f)
	store := env.Probe(t, repeating)
	run(t, repeating, store, slices.DeleteFunc(cases.Groups(store), func(g env.Group) bool {
		return g.Name == "bytes"
	}))
}
