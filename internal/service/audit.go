package service

import (
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
)

// AuditQuery bounds a list of actions.
type AuditQuery struct {
	Queue string `query:"queue" doc:"the queue whose actions to list; by default all actions, also those on servers"`
	ID    string `query:"id" doc:"the id that the actions named; by default any, or none"`
	Limit int    `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of actions, the newest first"`
}

func (q *AuditQuery) about(a *Action) {
	a.Queue = q.Queue
	if q.ID != "" {
		a.IDs = []string{q.ID}
	}
}

// AuditRow is an operator's action.
type AuditRow struct {
	At      time.Time     `json:"at" class:"public" doc:"when it began"`
	Action  string        `json:"action" class:"public" doc:"the action, such as pause, revive or purge all"`
	Actor   string        `json:"actor,omitempty" class:"public" doc:"who did it"`
	From    string        `json:"from,omitempty" class:"public" wide:"true" doc:"where the request came from"`
	Reason  string        `json:"reason,omitempty" class:"public" doc:"the reason that the actor gave"`
	Queue   string        `json:"queue,omitempty" class:"queue" doc:"the queue; empty for an action on a server or on the store"`
	IDs     []string      `json:"ids,omitempty" class:"target" doc:"the first of the named ids, at most 20; for a drain the server"`
	Named   int           `json:"named" class:"public" wide:"true" doc:"the number of named ids; 0 if the action named no id"`
	Prefix  string        `json:"prefix,omitempty" class:"target" wide:"true" doc:"the prefix of ids that chose entries"`
	Group   string        `json:"group,omitempty" class:"error" wide:"true" doc:"the group of dead letters that chose entries"`
	Filter  string        `json:"filter,omitempty" class:"quoting" doc:"the filter that chose entries, the name of schedules and what was changed of them, or the settings that were changed"`
	Ended   bool          `json:"ended" class:"public" doc:"whether the action has ended; if its process was killed, it never ends"`
	Handled int           `json:"handled" class:"public" doc:"the number of changed entries, as far as it is known"`
	Took    time.Duration `json:"took_seconds" class:"public" wide:"true" doc:"its duration in seconds; 0 until it has ended"`
	Error   string        `json:"error,omitempty" class:"quoting" doc:"the error that stopped it; absent if it is done"`
}

// ChosenBy describes in one text what has chosen the entries of the action: prefix, group and filter.
func (a *AuditRow) ChosenBy() string {
	var parts []string
	if a.Prefix != "" {
		parts = append(parts, "prefix "+a.Prefix)
	}
	if a.Group != "" {
		parts = append(parts, "group "+a.Group)
	}
	if a.Filter != "" {
		parts = append(parts, a.Filter)
	}
	return strings.Join(parts, ", ")
}

func (c *call) audit(q *AuditQuery) (*List[AuditRow], error) {
	reply, rows := newList[AuditRow](nil), view[AuditRow](c, 0)
	for a, err := range c.inspector.Actions(c.ctx, inspect.ActionsOptions{Queue: q.Queue, ID: q.ID}) {
		if err != nil {
			return nil, err
		}
		row := AuditOf(&a)
		if reply.Items = append(reply.Items, rows.Row(&row)); len(reply.Items) == q.Limit {
			break
		}
	}
	return reply, nil
}

// AuditOf returns the values of an action, not redacted.
func AuditOf(a *inspect.Action) AuditRow {
	return AuditRow{
		At:      a.At,
		Action:  a.Verb,
		Actor:   a.Actor.Name,
		From:    a.Actor.From,
		Reason:  a.Actor.Reason,
		Queue:   a.Queue,
		IDs:     a.IDs,
		Named:   a.Named,
		Prefix:  a.Prefix,
		Group:   a.Group,
		Filter:  a.Filter,
		Ended:   a.Ended,
		Handled: a.Handled,
		Took:    a.Took,
		Error:   a.Error,
	}
}
