package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/conformance/internal/random"
	"github.com/skeinq/skein/ports"
)

// Run tests the stores of f against the contract of package ports: the named cases, each on fresh
// backends, the worked cases of docs/rules.md, random histories compared with a model, concurrent
// handles, and calls that fail or lose their reply. f is called once for each backend. With -short,
// each call meets two of the six faults, and the largest cases are skipped.
func Run(t *testing.T, f Factory) {
	t.Helper()
	store := probe(t, f)
	run(t, f, store, groups(store))
}

func run(t *testing.T, f Factory, store ports.ShardStore, all []group) {
	t.Helper()
	for _, g := range all {
		t.Run(g.Name, func(t *testing.T) {
			for _, c := range g.Cases {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					g.run(c, t, f)
				})
			}
		})
	}
	t.Run("random", func(t *testing.T) { random.Test(t, f) })
	t.Run("racing", func(t *testing.T) { testRacing(t, f, store) })
	t.Run("faults", func(t *testing.T) { testFaults(t, f) })
}

// probe opens a store to see which optional interfaces it implements.
func probe(t testing.TB, f Factory) ports.ShardStore { return f(t, harness.NewClock().Now)() }

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
	f = repeating(f)
	store := probe(t, f)
	run(t, f, store, slices.DeleteFunc(groups(store), func(g group) bool { return g.Name == "bytes" }))
}

// repeating returns a factory of handles that repeat calls of unknown outcome.
func repeating(f Factory) Factory {
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		open := f(t, clock)
		return func() ports.ShardStore { return harness.Repeating(open()) }
	}
}

// groups returns the named cases for a store, also those of the optional interfaces that it
// implements.
func groups(store ports.ShardStore) []group {
	all := []group{
		{"declare", declareCases()},
		{"push", pushCases()},
		{"merge rule", append(mergeRuleCases(), setMergeCases()...)},
		{"urgent", urgentCases()},
		{"tags", tagsCases()},
		{"input", inputCases()},
		{"acquire", acquireCases()},
		{"orphan", orphanCases()},
		{"lease", leaseCases()},
		{"turn", turnCases()},
		{"usual", usualCases()},
		{"large", largeCases()},
		{"mixed", mixedCases()},
		{"bounds", boundCases()},
		{"bytes", slices.Concat(byteCases(), findByteCases())},
		{"repeat", repeatCases()},
		{"skip", skipCases()},
		{"settle", settleCases()},
		{"claim", claimCases()},
		{"recovered", recoveredCases()},
		{"begin", beginCases()},
		{"head", headCases()},
		{"pause", pauseCases()},
		{"cancel", cancelCases()},
		{"registry", registryCases()},
		{"audit", auditCases()},
		{"tracked", trackedCases()},
		{"permits", permitCases()},
		{"stats", statsCases()},
		{"history", historyCases()},
		{"list", slices.Concat(listCases(), pageCases(), pageOtherCases())},
		{"standing", standingCases()},
		{"step", stepCases()},
		{"hold", holdCases()},
		{"morgue", morgueCases()},
		{"group", groupCases()},
		{"import", importCases()},
		{"import jobs", importJobsCases()},
		{"delete payloads", deletePayloadsCases()},
		{"forget", forgetCases()},
		{"recount", recountCases()},
		{"quarantine", quarantineCases()},
		{"store", storeCases()},
		{"find", findCases()},
		{"vectors", vectorCases()},
	}
	return append(all, optionalGroups(store)...)
}

// optionalGroups returns the named cases of the optional interfaces that a store implements.
func optionalGroups(store ports.ShardStore) (all []group) {
	if _, ok := store.(ports.Notifier); ok {
		all = append(all, group{"wakeups", wakeupCases()}, group{"permit wakeups", permitWakeupCases()})
	}
	if _, ok := store.(ports.Settler); ok {
		all = append(all, group{"settler", settlerCases()})
	}
	if _, ok := store.(ports.TurnLimiter); ok {
		all = append(all, group{"limiter", limiterCases()})
	}
	if _, ok := store.(Transactor); ok {
		all = append(all, group{"transaction", transactionCases()})
	}
	if _, ok := store.(Severer); ok {
		all = append(all, group{"unreached", slices.Concat(unreachedCases(), unreachedListCases())})
	}
	if _, ok := store.(Damager); ok {
		all = append(all, group{"damaged", damageCases()})
	}
	return all
}
