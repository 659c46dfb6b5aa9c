package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleAudit      = "Audit stores an action; a later call with the same ID replaces everything of the earlier one except At"
	ruleAuditTime  = "Audit: At is the store's clock, or 1 µs after the newest action if the clock is not later than that"
	ruleAuditKept  = "Audit: of more than ActionsKept actions, those with the smallest At are removed"
	ruleActions    = "Actions lists actions, newest first; Before is the At of the previous page's last action; Limit is the largest number of actions to list, 0 means MaxActions, which is also the maximum"
	ruleAuditInput = "Action.Validate: ErrInvalidRequest for an empty ID or Verb, an ID of more than 64 bytes, a text that is not a core.Text or is longer than MaxActionText, and more than MaxActionIDs ids"
)

func auditCases() []namedCase {
	return []namedCase{
		{"lists every field of an action", ruleAudit, auditWhole},
		{"replaces an action when it has ended", ruleAudit, auditEnds},
		{"orders actions by when they began", ruleAuditTime, auditOrder},
		{"dates a new action after the others even if the clock stepped back", ruleAuditTime, auditClockBack},
		{"keeps a thousand actions", ruleAuditKept, auditKeeps},
		{"lists actions by pages", ruleActions, auditPages},
		{"accepts the largest action", ruleAuditInput, auditLargest},
		{"refuses a bad action", ruleAuditInput, auditInvalid},
	}
}

func (e *env) audit(a ports.Action) {
	e.tb.Helper()
	e.must(e.store.Audit(e.ctx, a), "Audit")
}

func (e *env) actions(r ports.ActionsRequest) []ports.Action {
	e.tb.Helper()
	page, err := e.store.Actions(e.ctx, r)
	e.must(err, "Actions")
	return page
}

// audited lists the IDs of the newest actions.
func (e *env) audited(r ports.ActionsRequest) []string {
	e.tb.Helper()
	var out []string
	for _, a := range e.actions(r) {
		out = append(out, a.ID)
	}
	return out
}

func auditWhole(e *env) {
	e.same("the actions at first", e.audited(ports.ActionsRequest{}), nil)
	a := ports.Action{
		ID: "1", At: 7, Verb: "revive", Actor: "anna", From: "10.0.0.1", Reason: "the bank is back \\\"é", Queue: orders, IDs: []string{"a", "b"}, Named: 30,
		Prefix: "p", Group: "g", Filter: "f", Ended: true, Handled: 29, Took: 3*time.Second + 1, Error: "boom",
	}
	e.audit(a)
	a.At = e.now()
	bare := ports.Action{ID: "2", Verb: "drain", Queue: "never declared"}
	e.clock.Advance(time.Second)
	e.audit(bare)
	bare.At = e.now()
	e.same("the actions", e.actions(ports.ActionsRequest{}), []ports.Action{bare, a})
	clear(e.actions(ports.ActionsRequest{})[1].IDs)
	a.IDs[0] = "changed"
	e.same("the ids again", e.actions(ports.ActionsRequest{})[1].IDs, []string{"a", "b"})
}

func auditEnds(e *env) {
	e.audit(ports.Action{ID: "1", Verb: "purge", Queue: orders, Prefix: "p", Reason: "why"})
	began := e.now()
	e.clock.Advance(time.Minute)
	e.audit(ports.Action{ID: "2", Verb: "pause", Queue: orders})
	later := e.now()
	e.clock.Advance(time.Minute)
	ended := ports.Action{ID: "1", Verb: "purge", Queue: orders, Ended: true, Handled: 5, Took: 2 * time.Minute}
	for range 2 {
		e.audit(ended)
	}
	ended.At = began
	e.same("the actions", e.actions(ports.ActionsRequest{}), []ports.Action{{ID: "2", At: later, Verb: "pause", Queue: orders}, ended})
}

func auditOrder(e *env) {
	for _, id := range []string{"b", "c", "a"} {
		e.audit(ports.Action{ID: id, Verb: "pause"})
	}
	page := e.actions(ports.ActionsRequest{})
	for i, want := range []string{"a", "c", "b"} {
		e.same("the ID", page[i].ID, want)
		e.same("its time", page[i].At, e.now()+core.Instant(2-i))
	}
}

func auditClockBack(e *env) {
	e.audit(ports.Action{ID: "1", Verb: "pause"})
	first := e.now()
	e.clock.Advance(-time.Hour)
	e.audit(ports.Action{ID: "2", Verb: "resume"})
	e.same("the actions", e.actions(ports.ActionsRequest{}), []ports.Action{{ID: "2", At: first + 1, Verb: "resume"}, {ID: "1", At: first, Verb: "pause"}})
}

func auditKeeps(e *env) {
	const more = 3
	for i := range ports.ActionsKept + more {
		e.audit(ports.Action{ID: fmt.Sprint(i), Verb: "pause"})
	}
	e.audit(ports.Action{ID: fmt.Sprint(more), Verb: "pause", Ended: true}) // no new action
	var ids []string
	var r ports.ActionsRequest
	for range 2 * ports.ActionsKept / ports.MaxActions {
		for _, a := range e.actions(r) {
			ids = append(ids, a.ID)
			r.Before = a.At
		}
	}
	e.same("how many are kept", len(ids), ports.ActionsKept)
	e.same("the newest", ids[0], fmt.Sprint(ports.ActionsKept+more-1))
	e.same("the oldest", ids[len(ids)-1], fmt.Sprint(more))
}

func auditPages(e *env) {
	for i := range ports.MaxActions + 2 {
		e.audit(ports.Action{ID: fmt.Sprint(i), Verb: "pause"})
	}
	for _, limit := range []int{-1, 0, ports.MaxActions, ports.MaxActions + 1} {
		e.same(fmt.Sprintf("how many with a limit of %d", limit), len(e.audited(ports.ActionsRequest{Limit: limit})), ports.MaxActions)
	}
	newest := e.actions(ports.ActionsRequest{Limit: 2})
	e.same("the first page", []string{newest[0].ID, newest[1].ID}, []string{fmt.Sprint(ports.MaxActions + 1), fmt.Sprint(ports.MaxActions)})
	e.same("the next page", e.audited(ports.ActionsRequest{Before: newest[1].At, Limit: 1}), []string{fmt.Sprint(ports.MaxActions - 1)})
	e.same("the page after the last", e.audited(ports.ActionsRequest{Before: 1}), nil)
}

func largestAction() ports.Action {
	text := strings.Repeat("x", ports.MaxActionText)
	a := ports.Action{
		ID: strings.Repeat("i", 64), Verb: text, Actor: text, From: text, Reason: text, Queue: text, Prefix: text, Group: text, Filter: text, Error: text,
	}
	for range ports.MaxActionIDs {
		a.IDs = append(a.IDs, text)
	}
	return a
}

func auditLargest(e *env) {
	a := largestAction()
	e.audit(a)
	a.At = e.now()
	e.same("the actions", e.actions(ports.ActionsRequest{}), []ports.Action{a})
}

func auditInvalid(e *env) {
	change := func(f func(*ports.Action)) ports.Action {
		a := largestAction()
		f(&a)
		return a
	}
	for what, a := range map[string]ports.Action{
		"without an ID":                 change(func(a *ports.Action) { a.ID = "" }),
		"with a long ID":                change(func(a *ports.Action) { a.ID += "i" }),
		"without a Verb":                change(func(a *ports.Action) { a.Verb = "" }),
		"with a long text":              change(func(a *ports.Action) { a.Reason += "x" }),
		"with a long id":                change(func(a *ports.Action) { a.IDs[19] += "x" }),
		"with too many ids":             change(func(a *ports.Action) { a.IDs = append(a.IDs, "x") }),
		"with NUL":                      change(func(a *ports.Action) { a.Error = "\x00" }),
		"with bytes that are not UTF-8": change(func(a *ports.Action) { a.IDs[0] = "\xff" }),
	} {
		e.refused("an action "+what, e.store.Audit(e.ctx, a), ports.ErrInvalidRequest)
	}
	e.same("the actions", e.audited(ports.ActionsRequest{}), nil)
}
