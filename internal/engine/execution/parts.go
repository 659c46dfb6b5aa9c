package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A handler may settle payloads of its job one by one, each in a transaction of its own. The engine
// can't know which of these have committed. Each commit gives the claim another receipt. So when
// the handler has returned, the job has a version for each number of payloads that may be gone,
// each with a settlement. The store carries out the one whose receipt is claimed, and skips the
// others.

var (
	errSettledBefore = errors.New(
		"settle in a transaction: the handler has settled this payload before, and then another one",
	)
	errSettledWhole = errors.New("settle in a transaction: the handler has settled the whole job before")
)

// jobParts are the payloads of a job that were settled one by one: by its handler, or by turns.
type jobParts struct {
	// done are their positions in the claim, in the order of the calls. The store has settled the
	// first proven ones: it has answered, or it has settled another payload behind them.
	done   []int
	proven int
	// byTurn are the positions of those that turns settle. They are done, whether or not the store
	// has received that.
	byTurn []int
	// last is the position of the payload that the handler has begun last, if it takes payloads one
	// after another, else -1.
	last int
}

// SettlePayloadIn settles in the settler's transaction the payload at a position of job i, which
// the handler of ctx works. If no other payload of the job is open, it settles the job.
func SettlePayloadIn(ctx context.Context, settler ports.Settler, b *Batch, i, position int) error {
	if _, err := settling(ctx, b); err != nil {
		return err
	}
	return b.settlePayload(ctx, settler, i, position)
}

func (b *Batch) settlePayload(ctx context.Context, settler ports.Settler, i, position int) error {
	if b.isLastOpen(i, position) {
		return b.settleJobs(ctx, settler, wholeBatch, onePayload{i, position})
	}

	part, again, err := b.notePart(i, position)
	if err != nil {
		return err
	}

	err = settler.SettlePayload(ctx, b.shard.ID, part)
	if errors.Is(err, ports.ErrLeaseLost) && b.dropBuriedPart(i, 1) {
		if part, again, err = b.notePart(i, position); err == nil {
			err = settler.SettlePayload(ctx, b.shard.ID, part)
		}
	}

	switch {
	case err == nil:
		b.proveParts(i, 1)
		return nil
	case errors.Is(err, ports.ErrLeaseLost) && again:
		return errSettledAgain(err)
	case errors.Is(err, ports.ErrLeaseLost) && part.Receipt.Part() > 0:
		return errBehindPart(err)
	}
	return fmt.Errorf("settle in a transaction: %w", err)
}

// dropBuriedPart looks at one part of job i: the last one that has the given number of parts behind
// it. If the handler has buried that payload since, its transaction has probably rolled back, and
// dropBuriedPart forgets the part. Otherwise it returns false.
func (b *Batch) dropBuriedPart(i, behind int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	p := b.parts[i]
	if p == nil {
		return false
	}

	at := len(p.done) - 1 - behind
	if at < p.proven {
		return false
	}

	marks := b.outcomes[i].Payloads
	if m, found := findMark(marks, p.done[at]); !found || !marks[m].Bury {
		return false
	}

	p.done = slices.Delete(slices.Clone(p.done), at, at+1)
	return true
}

// proveParts notes that all parts of job i but the last given number have committed.
func (b *Batch) proveParts(i, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.parts[i]; p != nil {
		p.proven = max(p.proven, len(p.done)-open)
	}
}

func errSettledAgain(err error) error {
	return fmt.Errorf("settle in a transaction: the handler has already settled its job, in this transaction or "+
		"in one that has committed; settle it once: %w", err)
}

func errBehindPart(err error) error {
	return fmt.Errorf(
		"settle in a transaction: either another server has the job, or the transaction of an earlier payload "+
			"has not committed; commit each before the next payload: %w",
		err,
	)
}

// isLastOpen reports whether each other payload of job i is settled or has an outcome of its own.
func (b *Batch) isLastOpen(i, position int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	settled := 0
	if p := b.parts[i]; p != nil {
		settled = len(p.done)
		if slices.Contains(p.done, position) {
			return false
		}
	}

	for _, m := range b.outcomes[i].Payloads {
		if m.Position != position && !b.isPart(i, m.Position) {
			settled++
		}
	}

	return settled == len(b.Claims[i].Payloads)-1
}

// isPart reports whether the handler has settled the payload by itself. The Batch is locked.
func (b *Batch) isPart(i, position int) bool {
	p := b.parts[i]
	return p != nil && slices.Contains(p.done, position)
}

// notePart notes that the payload at a position of job i is gone if the transaction commits, and
// returns its settlement. again is true if the handler has settled this payload before.
func (b *Batch) notePart(i, position int) (part core.PayloadSettlement, again bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.closed || b.current != wholeBatch && b.current != i || b.returned(i) {
		return part, false, errTooLate
	}
	if b.attached != nil {
		return part, false, errAttached
	}
	if _, whole := b.transacted[i]; whole {
		return part, false, errSettledWhole
	}

	p := b.partsFor(i)
	before := p.done
	if n := len(before); n > 0 && before[n-1] == position {
		before, again = before[:n-1], true
	}
	if slices.Contains(before, position) {
		return part, false, errSettledBefore
	}

	return b.addPart(i, p, before, position), again, nil
}

// partsFor returns the parts of job i, which it makes if there are none. The Batch is locked.
func (b *Batch) partsFor(i int) *jobParts {
	p := b.parts[i]
	if p == nil {
		p = &jobParts{last: -1}
		if b.byPayload {
			p.last = b.payload
		}
		put(&b.parts, i, p)
	}
	return p
}

// addPart adds the payload at a position to the parts of job i, behind those of before, and returns
// its settlement. The Batch is locked.
func (b *Batch) addPart(i int, p *jobParts, before []int, position int) core.PayloadSettlement {
	p.done = append(before[:len(before):len(before)], position)

	c := core.Claim{
		Job:     core.Job{ID: b.Claims[i].ID, State: b.Claims[i].State},
		Receipt: partReceipt(b.Claims[i].Receipt, len(before)),
	}
	if slices.Contains(before, 0) {
		c.State = c.Rest()
	}
	part := c.SettlePayload(position - countBelow(before, position))
	if b.shard.Queue.DropStale {
		part.Mark = core.MarkAt(b.Claims[i].Payloads[position].Score)
	}
	return part
}

// endBefore ends the payload before a position of a recovered job in the store, for a handler that
// takes the payloads one after another. It returns false if the payload at the position must not
// start. Then the payloads without an outcome go back untouched, unless the store has skipped the
// end because a transaction before it has not committed: then the job fails.
func (b *Batch) endBefore(i, position int) bool {
	part, stored, ok := b.partBefore(i, position-1)
	if !ok || stored {
		return ok
	}
	sent := b.SendPart(part)

	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.parts[i]
	switch {
	case sent:
		p.proven = len(p.done)
	case b.closed:
	case p.proven < len(p.done)-1:
		b.set(i, b.shard.Queue.failure(ErrNotCommitted), nil)
	default:
		b.set(i, core.Outcome{Kind: core.Untouched}, nil)
	}
	return sent
}

// partBefore returns the settlement of the payload at a position of job i, which has ended. stored
// is true if the handler has settled it in a transaction. ok is false if no other payload may
// start: the job is halted, or the payload is to be buried, which only the job's settlement does.
func (b *Batch) partBefore(i, position int) (part core.PayloadSettlement, stored, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return part, false, false
	}
	marks := b.outcomes[i].Payloads
	m, marked := findMark(marks, position)
	if b.halted(i) || marked && marks[m].Bury {
		b.set(i, core.Outcome{Kind: core.Untouched}, nil)
		return part, false, false
	}
	if b.isPart(i, position) {
		return part, true, true
	}

	p := b.partsFor(i)
	p.byTurn = append(p.byTurn, position)
	return b.addPart(i, p, p.done, position), false, true
}

// partReceipt returns the receipt of a claim after n of its payloads were settled by themselves.
func partReceipt(r core.Receipt, n int) core.Receipt {
	for range n {
		r = r.NextPart()
	}
	return r
}

// countBelow returns how many of the positions are below one.
func countBelow(positions []int, position int) (n int) {
	for _, p := range positions {
		if p < position {
			n++
		}
	}
	return n
}

// withoutPayloads returns a settlement of a claim for the claim that has lost the payloads at some
// positions, one after another.
func withoutPayloads(s core.Settlement, gone []int) core.Settlement {
	if len(gone) == 0 {
		return s
	}
	s.Receipt = partReceipt(s.Receipt, len(gone))
	except := make([]core.PayloadDisposition, 0, len(s.Except))
	for _, d := range s.Except {
		if !slices.Contains(gone, d.Position) {
			d.Position -= countBelow(gone, d.Position)
			except = append(except, d)
		}
	}
	s.Except = except
	return s
}

// withDone returns marks in which the payloads at some positions are done.
func withDone(marks []core.PayloadOutcome, positions []int) []core.PayloadOutcome {
	marks = slices.Clone(marks)
	for _, position := range positions {
		m := core.PayloadOutcome{Position: position}
		if at, found := findMark(marks, position); found {
			marks[at] = m
		} else {
			marks = slices.Insert(marks, at, m)
		}
	}
	return marks
}

// partVersion is how a job ends if a number of its parts has committed. outcome and settlement name
// payloads by their positions in the claim. sent is that settlement with positions among the
// payloads that are left.
type partVersion struct {
	outcome          core.Outcome
	settlement, sent core.Settlement
}

// partGroup is the versions of a job, the likeliest first, until the store has answered which one
// is right.
type partGroup struct {
	batch    *Batch
	job      int
	versions []partVersion
	// left is the number of versions that are not answered, and skipped are the settlements that
	// the store has skipped. redo is set if a settlement was deferred, so that the skipped ones
	// have to be sent again.
	left    int
	skipped []core.Settlement
	redo    bool
	// replies is how many turns have answered, and again is set once all versions, skipped by
	// several turns, were sent again: a transaction may have committed between those turns.
	replies int
	again   bool
	// over is set once the store has answered. applied is the version that it has carried out, or
	// -1.
	over    bool
	applied int
	// resent is set if a turn with some of the versions was repeated.
	resent bool
}

// partGroups returns the groups of a closed batch by job.
func (b *Batch) partGroups() map[int]*partGroup {
	if b.parts == nil {
		return nil
	}

	groups := make(map[int]*partGroup, len(b.parts))
	for i, p := range b.parts {
		g := &partGroup{batch: b, job: i, applied: -1}
		for _, n := range b.likelyParts(i, p) {
			o := b.partOutcome(i, p, n)
			s := b.settlement(i, o)
			g.versions = append(g.versions, partVersion{o, s, withoutPayloads(s, p.done[:n])})
		}
		g.left = len(g.versions)
		groups[i] = g
	}

	return groups
}

// likelyParts returns the numbers of parts that may have committed, the likeliest first. If the
// store has then settled the rest of the job for a handler that returned nil, all of them have.
func (b *Batch) likelyParts(i int, p *jobParts) []int {
	all := len(p.done)
	if b.presumed[i] {
		return []int{all}
	}
	numbers := make([]int, 0, all+1-p.proven)
	for n := all; n >= p.proven; n-- {
		numbers = append(numbers, n)
	}
	if len(numbers) > 1 && b.outcomes[i].Kind == core.Failed && p.last == p.done[all-1] {
		numbers[0], numbers[1] = numbers[1], numbers[0]
	}
	return numbers
}

// partOutcome returns the outcome of job i if n of its parts have committed.
func (b *Batch) partOutcome(i int, p *jobParts, n int) core.Outcome {
	o := b.outcomes[i]
	o.Payloads = slices.DeleteFunc(slices.Clone(o.Payloads), func(m core.PayloadOutcome) bool {
		return !m.Bury && slices.Contains(p.done, m.Position) && !slices.Contains(p.byTurn, m.Position)
	})

	switch all := len(p.done); {
	case n < all && o.Kind == core.Done:
		marks := o.Payloads
		o = b.shard.Queue.failure(ErrNotCommitted)
		o.Payloads = marks
	case n == all && n > 0 && o.Kind == core.Failed && p.last == p.done[n-1]:
		// It failed after its payload was done. The others have not run.
		o.Kind = core.Untouched
	}

	o.Payloads = withDone(o.Payloads, p.done[:n])
	return o
}

// OtherSettlements appends to a slice the settlements of the other versions of a closed batch's
// jobs.
func (b *Batch) OtherSettlements(to []core.Settlement) []core.Settlement {
	for _, g := range b.groups {
		for _, v := range g.versions[1:] {
			to = append(to, v.sent)
		}
	}
	return to
}

// answerParts takes the answers to versions of jobs from the reply of a turn, before the results
// are confirmed. If a version is deferred, a transaction is still open, so the skipped ones may
// become right and are sent again.
func (e *Ends) answerParts(settled []core.Settlement, r *ports.TurnReply) (again []core.Settlement) {
	if len(e.groups) == 0 {
		return nil
	}

	var answered []*partGroup
	for i := range settled {
		g := e.groups[core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt.Whole()}]
		if g == nil || g.over {
			continue
		}
		if !slices.Contains(answered, g) {
			answered = append(answered, g)
			g.replies++
		}

		switch {
		case r.Repeat: // it is sent again
			g.resent = true
		case slices.Contains(r.Deferred, i):
			g.redo = true
		case slices.Contains(r.Skipped, i):
			g.left--
			g.skipped = append(g.skipped, settled[i])
		default:
			g.over, g.applied = true, g.find(settled[i].Receipt)
		}
	}

	for _, g := range answered {
		if g.left == 0 && g.replies > 1 && !g.again && !g.over {
			g.redo, g.again = true, true
		}
		if g.redo && !g.over {
			again = append(again, g.skipped...)
			g.left, g.skipped, g.redo = g.left+len(g.skipped), nil, false
		}
		if g.over = g.over || g.left == 0; g.over {
			delete(e.groups, g.batch.Claims[g.job].Ref())
		}
	}

	return again
}

// find returns the version with a receipt.
func (g *partGroup) find(r core.Receipt) int {
	return slices.IndexFunc(g.versions, func(v partVersion) bool { return v.sent.Receipt == r })
}

// ended returns the version that is right, if one is: that of the settlement that the store has
// carried out, or the transaction in which the handler has settled the rest of the job. If a
// repeated turn has carried it out, the likeliest is assumed.
func (g *partGroup) ended() (o *core.Outcome, s *core.Settlement, ok bool) {
	if g.applied >= 0 {
		return &g.versions[g.applied].outcome, &g.versions[g.applied].settlement, true
	}
	if t, whole := g.batch.transacted[g.job]; whole {
		return &t.outcome, &t.settlement, true
	}
	return &g.versions[0].outcome, &g.versions[0].settlement, g.resent
}

// result returns how the job ended. ok is false if no version is right.
func (g *partGroup) result() (r Result, ok bool) {
	o, s, ok := g.ended()
	if !ok {
		return r, false
	}
	r = g.batch.result(g.job, o, s)
	if t, whole := g.batch.transacted[g.job]; whole && g.applied < 0 {
		r.Lines = g.batch.ignoredOutcome(g.job, &t.outcome)
	}
	return r, true
}
