package conformance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleTexts = "Validate: ErrInvalidRequest for an owner or a name that is no core.Text"

// noTexts are no texts for a store that keeps texts as such.
func noTexts() []string { return []string{"a\x00b", "a\xff", "\xf0\x9f"} }

func inputOddNames(e *env) {
	h := e.acquire("n1")
	for _, odd := range noTexts() {
		for _, n := range []ports.Node{
			{Owner: odd}, {Owner: "o", Name: odd}, {Owner: "o", Host: odd}, {Owner: "o", Version: odd}, {Owner: "o", Queues: []string{odd}},
		} {
			_, err := e.store.Announce(e.ctx, ports.AnnounceRequest{Node: n, TTL: ttl})
			e.refused("Announce", err, ports.ErrInvalidRequest)
		}
		r := h.request(1)
		r.Node = odd
		_, err := e.store.Turn(e.ctx, r)
		e.refused("Turn", err, ports.ErrInvalidRequest)
		_, err = e.store.Acquire(e.ctx, e.acquireRequest(e.shard, odd))
		e.refused("Acquire", err, ports.ErrInvalidRequest)
		_, err = e.store.Permit(e.ctx, ports.PermitRequest{Queue: orders, Owner: odd, Attempt: 1, Limit: 1, Hold: 1, Want: 1, TTL: ttl})
		e.refused("Permit", err, ports.ErrInvalidRequest)
		e.refused("Record", e.store.Record(e.ctx, ports.RecordRequest{Owner: odd, Records: []ports.Record{{Queue: orders}}}), ports.ErrInvalidRequest)
	}
	e.same("the nodes", e.nodes(), nil)
	h.turn(0)
}

func inputOddOwners(e *env) {
	h := e.acquire("n1")
	for _, odd := range noTexts() {
		e.retire(odd)
		e.refused("DrainNode", e.store.DrainNode(e.ctx, odd, true), ports.ErrUnknownNode)
		lease := h.lease
		lease.Owner = odd
		r := h.request(1)
		r.Lease = lease
		_, err := e.store.Turn(e.ctx, r)
		e.refused("Turn", err, ports.ErrLeaseLost)
		_, err = e.store.Renew(e.ctx, ports.RenewRequest{Lease: lease, TTL: ttl})
		e.refused("Renew", err, ports.ErrLeaseLost)
		e.refused("Release", e.store.Release(e.ctx, lease), ports.ErrLeaseLost)
	}
	h.turn(0)
}

func inputOddQueues(e *env) {
	for _, odd := range noTexts() {
		calls := undeclaredCalls(e, odd)
		delete(calls, "Import") // like Push, it validates names itself
		for what, err := range calls {
			e.refused(fmt.Sprintf("%s on queue %q", what, odd), err, ports.ErrUnknownQueue)
		}
	}
}

func inputOddReceipts(e *env) {
	h, c := claimedJob(e)
	var odd []core.Settlement
	r := h.request(0)
	for _, id := range noTexts() {
		other := c
		other.ID = id
		odd = append(odd, done(other))
		r.Begin = append(r.Begin, core.ClaimRef{ID: id, Receipt: c.Receipt})
	}
	r.Settlements = odd
	reply := h.send(r)
	e.reported("the skipped", reply.Skipped, []int{0, 1, 2})
	e.reported("the claims that did not begin", reply.NotBegun, []int{0, 1, 2})
	h.settle(done(c))
}

func inputOddCursors(e *env) {
	e.pushIDs("a", "b")
	for _, odd := range noTexts() {
		page := ports.PageRequest{Queue: orders, After: ports.Cursor{Key: 1, ID: odd}}
		_, jobs := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: page, SortBy: ports.RetryingByID})
		_, claimed := e.store.Claimed(e.ctx, page)
		_, dead := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: page})
		for _, err := range []error{jobs, claimed, dead} {
			if err != nil && !errors.Is(err, ports.ErrInvalidRequest) {
				e.errorf("a list after %q: %v", odd, err)
			}
		}
	}
}

func settleErrorTexts(e *env) {
	h, c := claimedJob(e)
	for _, odd := range append(noTexts(), strings.Repeat("é", core.MaxErrorBytes)) {
		c = h.one(failed(c, odd, 0))
		e.same("the job's error", c.Error, core.ErrorText(odd))
	}
	h.settle(buried(c, "a\x00\xff"))
	e.same("the dead letter's error", e.deadLetter("a").Error, core.ErrorText("a\x00\xff"))
}
