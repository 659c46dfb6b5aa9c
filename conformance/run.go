package conformance

import (
	"testing"

	"github.com/skeinq/skein/ports"
)

// Run holds a store to the contract of package ports: the named cases, each on
// a fresh backend, the worked cases of docs/rules.md, random histories beside
// the model, handles that race, and replies that fail or are lost.
func Run(t *testing.T, f Factory) {
	t.Helper()
	for _, g := range groups(probe(t, f)) {
		t.Run(g.Name, func(t *testing.T) {
			for _, c := range g.Cases {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					g.check(c, t, f)
				})
			}
		})
	}
	t.Run("random", func(t *testing.T) { testRandom(t, f) })
	t.Run("racing", func(t *testing.T) { testRacing(t, f) })
	t.Run("faults", func(t *testing.T) { testFaults(t, f) })
}

// probe opens a store to see which extras it has.
func probe(t testing.TB, f Factory) ports.ShardStore { return f(t, newClock().Now)() }

// groups are the named cases for a store with its extras.
func groups(store ports.ShardStore) []group {
	all := []group{
		{"declare", declareCases()},
		{"push", pushCases()},
		{"input", inputCases()},
		{"acquire", acquireCases()},
		{"orphan", orphanCases()},
		{"lease", leaseCases()},
		{"turn", turnCases()},
		{"usual", usualCases()},
		{"large", largeCases()},
		{"mixed", mixedCases()},
		{"repeat", repeatCases()},
		{"skip", skipCases()},
		{"settle", settleCases()},
		{"claim", append(claimCases(), oldCases()...)},
		{"recovered", recoveredCases()},
		{"begin", beginCases()},
		{"head", headCases()},
		{"pause", pauseCases()},
		{"cancel", cancelCases()},
		{"registry", registryCases()},
		{"stats", statsCases()},
		{"history", historyCases()},
		{"list", listCases()},
		{"step", stepCases()},
		{"morgue", morgueCases()},
		{"forget", forgetCases()},
		{"recount", recountCases()},
		{"store", storeCases()},
		{"vectors", vectorCases()},
	}
	if _, ok := store.(ports.Notifier); ok {
		all = append(all, group{"wakeups", wakeupCases()})
	}
	if _, ok := store.(ports.Settler); ok {
		all = append(all, group{"settler", settlerCases()})
	}
	if _, ok := store.(Transactor); ok {
		all = append(all, group{"transaction", transactionCases()})
	}
	return all
}
