package service

import (
	"regexp"
	"time"

	"github.com/skeinq/skein/inspect"
)

// AuditQuery bounds a list of actions.
type AuditQuery struct {
	Queue string `query:"queue" doc:"the queue whose actions to list; by default all actions, also those on servers"`
	Limit int    `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of actions, the newest first"`
}

func (q *AuditQuery) about(a *Action) { a.Queue = q.Queue }

// AuditRow is an operator's action.
type AuditRow struct {
	At      time.Time `json:"at" doc:"when it began"`
	Action  string    `json:"action" doc:"the action, such as pause, revive or purge all"`
	Actor   string    `json:"actor,omitempty" doc:"who did it"`
	From    string    `json:"from,omitempty" doc:"where the request came from"`
	Reason  string    `json:"reason,omitempty" doc:"the reason that the actor gave"`
	Queue   string    `json:"queue,omitempty" doc:"the queue; empty for an action on a server or on the store"`
	IDs     []string  `json:"ids,omitempty" doc:"the first of the named ids, at most 20; for a drain the server"`
	Named   int       `json:"named" doc:"the number of named ids; 0 if the action named no id"`
	Prefix  string    `json:"prefix,omitempty" doc:"the prefix of ids that chose entries"`
	Group   string    `json:"group,omitempty" doc:"the group of dead letters that chose entries"`
	Filter  string    `json:"filter,omitempty" doc:"the filter that chose entries, or the name of schedules and what was changed of them"`
	Ended   bool      `json:"ended" doc:"whether the action has ended; if its process was killed, it never ends"`
	Handled int       `json:"handled" doc:"the number of changed entries, as far as it is known"`
	Took    float64   `json:"took_seconds" doc:"its duration in seconds; 0 until it has ended"`
	Error   string    `json:"error,omitempty" doc:"the error that stopped it; absent if it is done"`
}

func (c *call) audit(q *AuditQuery) (*List[AuditRow], error) {
	reply := newList[AuditRow](nil)
	for a, err := range c.inspector.Actions(c.ctx, inspect.ActionsOptions{Queue: q.Queue}) {
		if err != nil {
			return nil, err
		}
		if reply.Items = append(reply.Items, c.auditRow(&a)); len(reply.Items) == q.Limit {
			break
		}
	}
	return reply, nil
}

// quotations are quoted texts, such as ids, in the text of an error.
var quotations = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// withoutIDs replaces all quotations in an action's error or filter if ids are redacted. The text
// of an error doesn't show which quotations are ids, and a filter may name a tag.
func (s *Service) withoutIDs(text string) string {
	if s.o.RedactID == nil {
		return text
	}
	return quotations.ReplaceAllLiteralString(text, `"…"`)
}

func (c *call) auditRow(a *inspect.Action) AuditRow {
	row := AuditRow{
		At:      a.At.UTC(),
		Action:  a.Verb,
		Actor:   a.Actor.Name,
		From:    a.Actor.From,
		Reason:  a.Actor.Reason,
		Queue:   a.Queue,
		Named:   a.Named,
		Prefix:  c.ID(a.Queue, a.Prefix),
		Group:   c.ErrorText(a.Queue, "", a.Group),
		Filter:  c.ErrorText(a.Queue, "", c.withoutIDs(a.Filter)),
		Ended:   a.Ended,
		Handled: a.Handled,
		Took:    a.Took.Seconds(),
		Error:   c.ErrorText(a.Queue, "", c.withoutIDs(a.Error)),
	}

	for _, id := range a.IDs {
		if a.Queue != "" { // else it is a server
			id = c.ID(a.Queue, id)
		}
		row.IDs = append(row.IDs, id)
	}
	return row
}
