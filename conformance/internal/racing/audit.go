package racing

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// audit records what happens on a working day and checks it at the end. Goroutines record in any
// order, so it compares tokens and numbers of turns, never times.
type audit struct {
	e  *env.Env
	mu sync.Mutex
	// pushed is the Data that was accepted for each id, by rising scores. again has the Data of
	// repeated pushes, which may be in two places.
	pushed map[string][]string
	again  map[copyOf]bool
	// incomplete is true if a lease was lost before its owner knew whether the last turn was
	// carried out.
	incomplete bool
	// turns are the turns that were carried out. apart are the settlements of transactions.
	turns []carriedOut
	apart []core.Settlement
	// tokens has the largest token of each shard that an Acquire has returned.
	tokens map[core.Shard]int64
	// spans are the claims of each id, filled by verify.
	spans             map[string][]*span
	processed, failed int64
}

// copyOf is a payload of an id.
type copyOf struct{ id, data string }

type carriedOut struct {
	request ports.TurnRequest
	reply   ports.TurnReply
}

func (t carriedOut) receipt() core.Receipt {
	return core.Receipt{Token: t.request.Lease.Token, Number: t.request.Number}
}

// span is a claim from its turn to the turn that settled it.
type span struct {
	core.Claim
	// settled is the turn that settled the claim. The zero value means no turn.
	settled core.Receipt
	// discarded is true if all payloads of the claim were done or dropped.
	discarded bool
}

func newAudit(e *env.Env) *audit {
	return &audit{
		e:      e,
		pushed: map[string][]string{},
		again:  map[copyOf]bool{},
		spans:  map[string][]*span{},
		tokens: map[core.Shard]int64{},
	}
}

func (a *audit) accepted(id, data string, again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.again[copyOf{id, data}] = again
	a.pushed[id] = append(a.pushed[id], data)
}

// floor returns a token that each later Acquire of the shard must exceed.
func (a *audit) floor(at core.Shard) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tokens[at]
}

func (a *audit) acquired(at core.Shard, floor, token int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token <= floor {
		a.e.Errorf("shard %v: token %d came after %d", at, token, floor)
	}
	a.tokens[at] = max(a.tokens[at], token)
}

// outcomeLost records that the outcome of a turn will never be known.
func (a *audit) outcomeLost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.incomplete = true
}

// turned records a turn that was carried out.
func (a *audit) turned(r ports.TurnRequest, reply ports.TurnReply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns = append(a.turns, carriedOut{r, reply})
}

// verify checks the records after all goroutines have ended.
func (a *audit) verify(queue string) {
	if a.incomplete {
		a.e.GiveUp()
	}

	for _, t := range a.turns {
		for _, c := range t.reply.Claims {
			a.spans[c.ID] = append(a.spans[c.ID], &span{Claim: c})
		}
	}

	for _, t := range a.turns {
		for i, s := range t.request.Settlements {
			if !slices.Contains(t.reply.Skipped, i) && !slices.Contains(t.reply.Deferred, i) {
				a.settled(t.receipt(), s)
			}
		}
	}

	for _, s := range a.apart {
		a.settled(s.Receipt, s) // no turn settled it, so the turn that claimed it stands for one
	}

	for id := range a.pushed {
		slices.SortFunc(a.spans[id], func(x, y *span) int { return compareReceipts(x.Receipt, y.Receipt) })
		a.exclusive(id)
		a.placed(queue, id)
		a.inOrder(id)
	}

	a.e.CountsMatch(queue, a.processed, a.failed)
}

// settled records that a turn settled a claim, and reports a failure if another turn did too.
func (a *audit) settled(turn core.Receipt, s core.Settlement) {
	at := slices.IndexFunc(a.spans[s.ID], func(sp *span) bool { return sp.Receipt == s.Receipt })
	if at < 0 {
		a.e.Errorf("turn %v settled %q of receipt %v, which no turn returned", turn, s.ID, s.Receipt)
		return
	}

	sp := a.spans[s.ID][at]
	if sp.settled != (core.Receipt{}) {
		a.e.Errorf("%q of receipt %v was settled by turn %v and again by %v", s.ID, s.Receipt, sp.settled, turn)
	}

	sp.settled, sp.discarded = turn, s.Plain()
	if s.Processed {
		a.processed++
	}
	if s.Failed {
		a.failed++
	}
}

func compareReceipts(x, y core.Receipt) int {
	return cmp.Or(cmp.Compare(x.Token, y.Token), cmp.Compare(x.Number, y.Number))
}

// exclusive checks that each claim of an id was settled before the next claim, or by the turn that
// made the next claim.
func (a *audit) exclusive(id string) {
	spans := a.spans[id]
	for i := range len(spans) - 1 {
		next := spans[i+1].Receipt
		if spans[i].settled == (core.Receipt{}) || compareReceipts(spans[i].settled, next) > 0 {
			a.e.Errorf("%q was claimed by turn %v and settled by %v, but claimed again by %v",
				id, spans[i].Receipt, spans[i].settled, next)
		}
	}
}

// placed checks that each accepted copy is in one place: queued, claimed, dead or settled. A copy
// that an operator has deleted is in no place.
func (a *audit) placed(queue, id string) {
	places := map[string]int{}
	count := func(payloads []core.Payload) {
		for _, p := range payloads {
			places[string(p.Data)]++
		}
	}

	found := a.e.FindIn(queue, id)
	if found.Queued != nil {
		count(found.Queued.Payloads)
	}
	if found.Claim != nil {
		count(found.Claim.Payloads)
	}
	if found.DeadLetter != nil {
		count(found.DeadLetter.Payloads)
	}

	for _, sp := range a.spans[id] {
		if sp.discarded {
			count(sp.Payloads)
		}
	}

	for _, data := range a.pushed[id] {
		if n := places[data]; n > 1 && !a.again[copyOf{id, data}] || n == 0 && kindOf(id) != deletable {
			a.e.Errorf("the payload %q of %q is in %d places, want 1", data, id, n)
		}
		delete(places, data)
	}
	if len(places) > 0 {
		a.e.Errorf("%q has payloads that nobody pushed: %v", id, places)
	}
}

// inOrder checks that the payloads of each claim of an id were in order. It also checks that a
// plain id's payloads were done by rising scores; others may have been revived in between.
func (a *audit) inOrder(id string) {
	var all []core.Payload
	for _, sp := range a.spans[id] {
		if !slices.IsSortedFunc(sp.Payloads, core.Payload.Compare) {
			a.e.Errorf("the payloads of %q were claimed out of order: %v", id, sp.Payloads)
		}
		if sp.discarded {
			all = append(all, sp.Payloads...)
		}
	}

	if kindOf(id) == plainID && !slices.IsSortedFunc(all, core.Payload.Compare) {
		a.e.Errorf("the payloads of %q were done out of order: %v", id, all)
	}
}

func kindOf(id string) string {
	kind, _, _ := strings.Cut(id, "-")
	return kind
}

var kindsOfIDs = []string{plainID, buriable, deletable}

// Kinds of ids, each the first part of its ids, by what may happen to them.
const (
	// plainID ids are done, fail, are put back and lose their owners.
	plainID = "plain"
	// buriable ids may also be buried and revived.
	buriable = "buriable"
	// deletable ids may also be deleted, purged and dropped.
	deletable = "deletable"
)
