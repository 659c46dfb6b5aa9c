package conformance

import (
	"cmp"
	"slices"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// audit keeps the books of a working day. While it lasts, it only collects:
// goroutines enter what they did in any order, so that the proof holds tokens
// and numbers against each other, never times.
type audit struct {
	e  *env
	mu sync.Mutex
	// pushed is the Data accepted for each id, by rising scores. What was pushed
	// again since the outcome was unknown may be in two places: at least once.
	pushed map[string][]string
	again  map[copyOf]bool
	// forgotten reports that a lease was lost before it was known whether its last
	// turn was carried out, so that the books can't be complete.
	forgotten bool
	// turns are those that were carried out.
	turns []carriedOut
	// tokens are the largest that an Acquire has answered, for each shard.
	tokens map[core.Shard]int64
	// spans are the claims of each id, known at the end.
	spans             map[string][]*span
	processed, failed int64
}

// copyOf is a payload of an id.
type copyOf struct{ id, data string }

type carriedOut struct {
	request ports.TurnRequest
	reply   ports.TurnReply
}

func (t carriedOut) mark() core.Receipt {
	return core.Receipt{Token: t.request.Lease.Token, Number: t.request.Number}
}

// span is a claim from its turn to the turn that settled it.
type span struct {
	core.Claim
	// settled is the turn that settled it, zero if none did.
	settled core.Receipt
	// gone reports that it was settled whole, as done or dropped.
	gone bool
}

func newAudit(e *env) *audit {
	return &audit{e: e, pushed: map[string][]string{}, again: map[copyOf]bool{}, spans: map[string][]*span{}, tokens: map[core.Shard]int64{}}
}

func (a *audit) accepted(id, data string, again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.again[copyOf{id, data}] = again
	a.pushed[id] = append(a.pushed[id], data)
}

// floor is a token that every Acquire from now on has to exceed.
func (a *audit) floor(at core.Shard) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tokens[at]
}

func (a *audit) acquired(at core.Shard, floor, token int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token <= floor {
		a.e.errorf("shard %v: token %d was given after %d", at, token, floor)
	}
	a.tokens[at] = max(a.tokens[at], token)
}

// forgot enters that a turn's outcome will never be known.
func (a *audit) forgot() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgotten = true
}

// turned enters a turn that was carried out.
func (a *audit) turned(r ports.TurnRequest, reply ports.TurnReply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns = append(a.turns, carriedOut{r, reply})
}

// close proves the books once everybody is gone.
func (a *audit) close(queue string) {
	if a.forgotten {
		a.e.giveUp()
	}
	for _, t := range a.turns {
		for _, c := range t.reply.Claims {
			a.spans[c.ID] = append(a.spans[c.ID], &span{Claim: c})
		}
	}
	for _, t := range a.turns {
		for i, s := range t.request.Settlements {
			if !slices.Contains(t.reply.Skipped, i) {
				a.settled(t.mark(), s)
			}
		}
	}
	for id := range a.pushed {
		slices.SortFunc(a.spans[id], func(x, y *span) int { return compareMarks(x.Receipt, y.Receipt) })
		a.exclusive(id)
		a.placed(queue, id)
		a.inOrder(id)
	}
	a.e.countsMatch(queue, a.processed, a.failed)
}

// settled enters that a turn settled a claim, which no other may have.
func (a *audit) settled(turn core.Receipt, s core.Settlement) {
	at := slices.IndexFunc(a.spans[s.ID], func(sp *span) bool { return sp.Receipt == s.Receipt })
	if at < 0 {
		a.e.errorf("turn %v settled %q by mark %v, which no turn gave", turn, s.ID, s.Receipt)
		return
	}
	sp := a.spans[s.ID][at]
	if sp.settled != (core.Receipt{}) {
		a.e.errorf("%q of mark %v was settled by turn %v and again by %v", s.ID, s.Receipt, sp.settled, turn)
	}
	sp.settled, sp.gone = turn, s.Plain()
	if s.Processed {
		a.processed++
	}
	if s.Failed {
		a.failed++
	}
}

func compareMarks(x, y core.Receipt) int {
	return cmp.Or(cmp.Compare(x.Token, y.Token), cmp.Compare(x.Number, y.Number))
}

// exclusive proves that each claim of an id was settled before the next, or by
// the turn that made the next.
func (a *audit) exclusive(id string) {
	spans := a.spans[id]
	for i := range len(spans) - 1 {
		next := spans[i+1].Receipt
		if spans[i].settled == (core.Receipt{}) || compareMarks(spans[i].settled, next) > 0 {
			a.e.errorf("%q was claimed by turn %v and settled by %v, but claimed again by %v", id, spans[i].Receipt, spans[i].settled, next)
		}
	}
}

// placed proves that each accepted copy is in one place: queued, claimed, dead or
// settled. What an operator removes is in none.
func (a *audit) placed(queue, id string) {
	places := map[string]int{}
	count := func(payloads []core.Payload) {
		for _, p := range payloads {
			places[string(p.Data)]++
		}
	}
	found := a.e.findIn(queue, id)
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
		if sp.gone {
			count(sp.Payloads)
		}
	}
	for _, data := range a.pushed[id] {
		if n := places[data]; n > 1 && !a.again[copyOf{id, data}] || n == 0 && kindOf(id) != doomed {
			a.e.errorf("the payload %q of %q is in %d places, want 1", data, id, n)
		}
		delete(places, data)
	}
	if len(places) > 0 {
		a.e.errorf("%q has payloads that nobody pushed: %v", id, places)
	}
}

// inOrder proves that an id's payloads were claimed in order, and done by rising
// scores unless they may have left the morgue in between.
func (a *audit) inOrder(id string) {
	var all []core.Payload
	for _, sp := range a.spans[id] {
		if !slices.IsSortedFunc(sp.Payloads, core.Payload.Compare) {
			a.e.errorf("the payloads of %q are claimed out of order: %v", id, sp.Payloads)
		}
		if sp.gone {
			all = append(all, sp.Payloads...)
		}
	}
	if kindOf(id) == tame && !slices.IsSortedFunc(all, core.Payload.Compare) {
		a.e.errorf("the payloads of %q were done out of order: %v", id, all)
	}
}
