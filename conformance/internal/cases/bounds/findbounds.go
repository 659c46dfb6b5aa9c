package bounds

import (
	"slices"
	"testing"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// findByteCases are about more bytes than one call may return, and about ids with very many
// payloads.
func findByteCases() []env.Case {
	return []env.Case{
		{Name: "returns at most the bytes that one call may return", Rule: env.RuleFindBound, Check: findBytes},
		{Name: "returns the first payload whatever its size", Rule: env.RuleFindBound, Check: findFirst},
		{Name: "finds an id of 100,000 payloads", Rule: env.RuleFindBound, Check: findMany},
		{Name: "finds an id of 64 MiB", Rule: env.RuleFindBound, Check: findHuge},
	}
}

// weighty returns n payloads of size bytes each.
func weighty(n, size int) []core.Payload { return env.Volume{Jobs: 1, Payloads: n, Size: size}.List() }

func findBytes(e *env.Env) {
	all := weighty(20, 512<<10)
	e.PushList("a", all)
	found := e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: core.MaxTurnPayloads})
	e.Same("the first payloads", env.Brief(found.Queued.Payloads), env.Brief(all[:16]))
	e.Same("the count", found.Queued.Count, len(all))
	e.Same("all payloads", env.Brief(e.Queued("a").Payloads), env.Brief(all))
	buryParts(e, "a")
	found = e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: core.MaxTurnPayloads})
	e.Same("the first dead payloads", env.Brief(found.DeadLetter.Payloads), env.Brief(all[:16]))
	e.Same("all dead payloads", env.Brief(e.DeadLetter("a").Payloads), env.Brief(all))
}

// buryParts buries a job that is too large for one step.
func buryParts(e *env.Env, id string) {
	e.TB.Helper()
	for e.FindSome(ports.FindRequest{Queue: env.Orders, ID: id}).Queued != nil {
		e.ByIDs(e.Store.Bury, id)
	}
}

func findFirst(e *env.Env) {
	all := weighty(3, core.MaxStepBytes+1)
	e.PushList("a", all)
	for i, page := range e.FoundPages("a", ports.PlaceQueued, 2, len(all)) {
		e.Same("a page", env.Brief(page), env.Brief(all[i:i+1]))
	}
}

// long skips the case under -short. effort completes the sentence "this case …".
func long(e *env.Env, effort string) {
	e.TB.Helper()
	if testing.Short() {
		e.TB.Skip("-short skips this case, which " + effort)
	}
}

func findMany(e *env.Env) {
	long(e, "pushes 100,000 payloads")
	all := env.Tied(100_000)
	e.PushList("a", all)
	pages := e.FoundPages("a", ports.PlaceQueued, env.AllPayloads, len(all))
	e.Same("how many pages there are", len(pages), 100)
	e.Same("all payloads", env.Brief(slices.Concat(pages...)), env.Brief(all))
	buryParts(e, "a")
	pages = e.FoundPages("a", ports.PlaceDead, env.AllPayloads, len(all))
	e.Same("how many pages of dead ones there are", len(pages), 100)
	e.Same("all dead payloads", env.Brief(slices.Concat(pages...)), env.Brief(all))
}

func findHuge(e *env.Env) {
	long(e, "pushes 64 MiB")
	all := weighty(128, 512<<10)
	e.PushList("a", all)
	pages := e.FoundPages("a", ports.PlaceQueued, env.AllPayloads, len(all))
	e.Same("how many pages there are", len(pages), 8)
	e.Same("all payloads", env.Brief(slices.Concat(pages...)), env.Brief(all))
}
