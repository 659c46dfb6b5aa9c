package registry

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleAudit = "Audit stores an action; " +
		"a later call with the same ID replaces everything of the earlier one except At"
	ruleAuditTime = "Audit: At is the store's clock, " +
		"or 1 µs after the newest action if the clock is not later than that"
	ruleAuditKept = "Audit: of more than ActionsKept actions, those with the smallest At are removed"
	ruleActions   = "Actions lists actions, newest first; Before is the At of the previous page's last action; " +
		"Limit is the largest number of actions to list, 0 means MaxActions, which is also the maximum"
	ruleAuditInput = "Action.Validate: ErrInvalidRequest for an empty ID or Verb, an ID of more than 64 bytes, " +
		"a text that is not a core.Text or is longer than MaxActionText, and more than MaxActionIDs ids"
)

func auditCases() []env.Case {
	return []env.Case{
		{Name: "lists every field of an action", Rule: ruleAudit, Check: auditWhole},
		{Name: "replaces an action when it has ended", Rule: ruleAudit, Check: auditEnds},
		{Name: "orders actions by when they began", Rule: ruleAuditTime, Check: auditOrder},
		{
			Name:  "dates a new action after the others even if the clock stepped back",
			Rule:  ruleAuditTime,
			Check: auditClockBack,
		},
		{Name: "keeps a thousand actions", Rule: ruleAuditKept, Check: auditKeeps},
		{Name: "lists actions by pages", Rule: ruleActions, Check: auditPages},
		{Name: "accepts the largest action", Rule: ruleAuditInput, Check: auditLargest},
		{Name: "refuses a bad action", Rule: ruleAuditInput, Check: auditInvalid},
	}
}

func audit(e *env.Env, a ports.Action) {
	e.TB.Helper()
	e.Must(e.Store.Audit(e.Ctx, a), "Audit")
}

func actions(e *env.Env, r ports.ActionsRequest) []ports.Action {
	e.TB.Helper()
	page, err := e.Store.Actions(e.Ctx, r)
	e.Must(err, "Actions")
	return page
}

// audited lists the IDs of the newest actions.
func audited(e *env.Env, r ports.ActionsRequest) []string {
	e.TB.Helper()
	var out []string
	for _, a := range actions(e, r) {
		out = append(out, a.ID)
	}
	return out
}

func auditWhole(e *env.Env) {
	e.Same("the actions at first", audited(e, ports.ActionsRequest{}), nil)
	a := ports.Action{
		ID:      "1",
		At:      7,
		Verb:    "revive",
		Actor:   "anna",
		From:    "10.0.0.1",
		Reason:  "the bank is back \\\"é",
		Queue:   env.Orders,
		IDs:     []string{"a", "b"},
		Named:   30,
		Prefix:  "p",
		Group:   "g",
		Filter:  "f",
		Ended:   true,
		Handled: 29,
		Took:    3*time.Second + 1,
		Error:   "boom",
	}

	audit(e, a)
	a.At = e.Now()
	bare := ports.Action{ID: "2", Verb: "drain", Queue: "never declared"}
	e.Clock.Advance(time.Second)
	audit(e, bare)
	bare.At = e.Now()

	e.Same("the actions", actions(e, ports.ActionsRequest{}), []ports.Action{bare, a})

	clear(actions(e, ports.ActionsRequest{})[1].IDs)
	a.IDs[0] = "changed"
	e.Same("the ids again", actions(e, ports.ActionsRequest{})[1].IDs, []string{"a", "b"})
}

func auditEnds(e *env.Env) {
	audit(e, ports.Action{
		ID:     "1",
		Verb:   "purge",
		Queue:  env.Orders,
		Prefix: "p",
		Reason: "why",
	})
	began := e.Now()
	e.Clock.Advance(time.Minute)

	audit(e, ports.Action{ID: "2", Verb: "pause", Queue: env.Orders})
	later := e.Now()
	e.Clock.Advance(time.Minute)

	ended := ports.Action{
		ID:      "1",
		Verb:    "purge",
		Queue:   env.Orders,
		Ended:   true,
		Handled: 5,
		Took:    2 * time.Minute,
	}
	for range 2 {
		audit(e, ended)
	}

	ended.At = began
	e.Same("the actions", actions(e, ports.ActionsRequest{}),
		[]ports.Action{{ID: "2", At: later, Verb: "pause", Queue: env.Orders}, ended})
}

func auditOrder(e *env.Env) {
	for _, id := range []string{"b", "c", "a"} {
		audit(e, ports.Action{ID: id, Verb: "pause"})
	}
	page := actions(e, ports.ActionsRequest{})
	for i, want := range []string{"a", "c", "b"} {
		e.Same("the ID", page[i].ID, want)
		e.Same("its time", page[i].At, e.Now()+core.Instant(2-i))
	}
}

func auditClockBack(e *env.Env) {
	audit(e, ports.Action{ID: "1", Verb: "pause"})
	first := e.Now()
	e.Clock.Advance(-time.Hour)
	audit(e, ports.Action{ID: "2", Verb: "resume"})
	e.Same("the actions", actions(e, ports.ActionsRequest{}),
		[]ports.Action{{ID: "2", At: first + 1, Verb: "resume"}, {ID: "1", At: first, Verb: "pause"}})
}

func auditKeeps(e *env.Env) {
	const more = 3
	for i := range ports.ActionsKept + more {
		audit(e, ports.Action{ID: fmt.Sprint(i), Verb: "pause"})
	}
	audit(e, ports.Action{ID: fmt.Sprint(more), Verb: "pause", Ended: true}) // no new action

	var ids []string
	var r ports.ActionsRequest

	for range 2 * ports.ActionsKept / ports.MaxActions {
		for _, a := range actions(e, r) {
			ids = append(ids, a.ID)
			r.Before = a.At
		}
	}

	e.Same("how many are kept", len(ids), ports.ActionsKept)
	e.Same("the newest", ids[0], fmt.Sprint(ports.ActionsKept+more-1))
	e.Same("the oldest", ids[len(ids)-1], fmt.Sprint(more))
}

func auditPages(e *env.Env) {
	for i := range ports.MaxActions + 2 {
		audit(e, ports.Action{ID: fmt.Sprint(i), Verb: "pause"})
	}

	for _, limit := range []int{-1, 0, ports.MaxActions, ports.MaxActions + 1} {
		e.Same(fmt.Sprintf("how many with a limit of %d", limit),
			len(audited(e, ports.ActionsRequest{Limit: limit})), ports.MaxActions)
	}

	newest := actions(e, ports.ActionsRequest{Limit: 2})
	e.Same("the first page",
		[]string{newest[0].ID, newest[1].ID}, []string{fmt.Sprint(ports.MaxActions + 1), fmt.Sprint(ports.MaxActions)})
	e.Same("the next page",
		audited(e, ports.ActionsRequest{Before: newest[1].At, Limit: 1}), []string{fmt.Sprint(ports.MaxActions - 1)})
	e.Same("the page after the last", audited(e, ports.ActionsRequest{Before: 1}), nil)
}

func largestAction() ports.Action {
	text := strings.Repeat("x", ports.MaxActionText)
	a := ports.Action{
		ID:     strings.Repeat("i", 64),
		Verb:   text,
		Actor:  text,
		From:   text,
		Reason: text,
		Queue:  text,
		Prefix: text,
		Group:  text,
		Filter: text,
		Error:  text,
	}

	for range ports.MaxActionIDs {
		a.IDs = append(a.IDs, text)
	}
	return a
}

func auditLargest(e *env.Env) {
	a := largestAction()
	audit(e, a)
	a.At = e.Now()
	e.Same("the actions", actions(e, ports.ActionsRequest{}), []ports.Action{a})
}

func auditInvalid(e *env.Env) {
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
		e.Refused("an action "+what, e.Store.Audit(e.Ctx, a), ports.ErrInvalidRequest)
	}

	e.Same("the actions", audited(e, ports.ActionsRequest{}), nil)
}
