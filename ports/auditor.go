package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Auditor keeps the actions of operators: the last [ActionsKept] actions of all queues.
type Auditor interface {
	// Audit stores an action. The caller stores an action when the action begins, and again when it
	// has ended. A later call with the same ID replaces all fields of the earlier one, except At.
	// So a call may be repeated. If there are more than [ActionsKept] actions, those with the
	// smallest At are removed.
	//
	// The store sets At when it has no action with this ID. At is the store's clock, or 1 µs after
	// the newest action if the clock is not later than that action. So no two actions have the same
	// At, and a clock that steps back does not change the order of actions.
	//
	// Errors: ErrInvalidRequest, as Action.Validate returns it.
	Audit(ctx context.Context, a Action) error

	// Actions lists actions, newest first. It leaves out records that can't be read, so a page may
	// have fewer actions than Limit although more follow.
	Actions(ctx context.Context, r ActionsRequest) ([]Action, error)
}

// Limits of the audit.
const (
	// ActionsKept is the number of actions that a store keeps.
	ActionsKept = 1000
	// MaxActions is the maximum number of actions that one call of [Auditor.Actions] returns. It is
	// also the default.
	MaxActions = 100
	// MaxActionIDs is the maximum number of ids that an action lists.
	MaxActionIDs = 20
	// MaxActionText is the maximum size in bytes of each text and each id of an action.
	MaxActionText = 512
)

// Action is an action of an operator, as the audit keeps it.
type Action struct {
	// ID is the action's own id, drawn by the caller: not empty, at most 64 bytes.
	ID string
	// At is when the action began. The store sets it and ignores it in a request.
	At core.Instant
	// Verb is the kind of action, such as "pause" or "revive". It is not empty.
	Verb string
	// Actor is the operator's name, From is the address of the request, and Reason is the
	// operator's reason. Each may be empty.
	Actor, From, Reason string
	// Queue is the name of the queue. It is empty for an action on a server or on the store.
	Queue string
	// IDs are the first of the ids that the action named, or the server's owner; at most
	// [MaxActionIDs]. Named is the number of ids that it named. If Named is 0, the action selected
	// entries by Prefix, Group and Filter, or was about the whole queue.
	IDs   []string
	Named int
	// Prefix, Group and Filter are the conditions that selected the entries. All three are empty
	// for all entries.
	Prefix, Group, Filter string
	// Ended is true if the action has ended. Until then Took and Error are zero. An action whose
	// process was killed never ends.
	Ended bool
	// Handled is the number of entries that the action changed, as far as the caller knows. Changes
	// of a call whose reply was lost are missing.
	Handled int
	// Took is the duration of the action, by the clock of the caller's process.
	Took time.Duration
	// Error is the error that ended the action. It is empty after success.
	Error string
}

// Validate returns [ErrInvalidRequest] for an ID or a Verb that is empty, an ID of more than 64
// bytes, a text that is not a [core.Text] or is longer than [MaxActionText], and more than
// [MaxActionIDs] ids.
func (a *Action) Validate() error {
	switch {
	case a.ID == "" || len(a.ID) > 64:
		return fmt.Errorf("%w: the ID of the action has %d bytes; give 1 to 64", ErrInvalidRequest, len(a.ID))
	case a.Verb == "":
		return fmt.Errorf("%w: the action has no Verb; give one", ErrInvalidRequest)
	case len(a.IDs) > MaxActionIDs:
		return fmt.Errorf("%w: the action lists %d ids; the maximum is %d", ErrInvalidRequest, len(a.IDs), MaxActionIDs)
	}

	texts := append([]string{a.ID, a.Verb, a.Actor, a.From, a.Reason, a.Queue, a.Prefix, a.Group, a.Filter, a.Error},
		a.IDs...)
	for _, text := range texts {
		if len(text) > MaxActionText {
			return fmt.Errorf("%w: the action has a text of %d bytes; truncate it to %d",
				ErrInvalidRequest, len(text), MaxActionText)
		}
	}

	return validateTexts("the text of the action", texts...)
}

// ActionsRequest is a request for a page of actions.
type ActionsRequest struct {
	// Before requests only actions with a smaller At. For the next page it is the At of the last
	// action of the previous page. 0 requests the first page.
	Before core.Instant
	// Limit is the maximum number of actions to list. A value below 1 means [MaxActions], which is
	// also the maximum.
	Limit int
}

// Size returns Limit with its default and maximum applied.
func (r *ActionsRequest) Size() int {
	if r.Limit <= 0 {
		return MaxActions
	}
	return min(r.Limit, MaxActions)
}
