package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Auditor keeps what operators did: the last [ActionsKept] actions of all queues.
type Auditor interface {
	// Audit stores an action. An action is stored when it begins, and again when it has ended: the later call
	// replaces everything of the earlier one with the same ID but its At. So a call may be repeated. Of more than
	// [ActionsKept] actions, those with the smallest At are removed.
	//
	// The store sets At when the ID is new: it is the store's clock, or 1 µs after the newest action if the
	// clock is not later than that. So no two actions have the same At, and the order of actions survives a clock
	// that stepped back.
	//
	// Errors: ErrInvalidRequest, as Action.Validate has it.
	Audit(ctx context.Context, a Action) error

	// Actions lists actions, the newest first. A record that can't be read is left out.
	Actions(ctx context.Context, r ActionsRequest) ([]Action, error)
}

// Bounds of the audit.
const (
	// ActionsKept is how many actions a store keeps.
	ActionsKept = 1000
	// MaxActions is the most actions of one call of [Auditor.Actions]. It is also the default.
	MaxActions = 100
	// MaxActionIDs is how many ids an action may list.
	MaxActionIDs = 20
	// MaxActionText is the most bytes of each text of an action, and of each of its ids.
	MaxActionText = 512
)

// Action is something that an operator did.
type Action struct {
	// ID is the action's own, drawn by the caller: not empty, at most 64 bytes.
	ID string
	// At is when it began, as the store has set it. A request's is ignored.
	At core.Instant
	// Verb says what was done, such as "pause" or "revive"; it is not empty.
	Verb string
	// Actor is who did it, From is the address of the request, and Reason is why. Each may be empty.
	Actor, From, Reason string
	// Queue is the queue, or empty for an action on a server.
	Queue string
	// IDs are the first of the ids that the action named, or the server's owner; at most [MaxActionIDs]. Named is how many it named; 0 means
	// that it named none, but chose by Prefix, Group and Filter, or did something to the whole queue.
	IDs   []string
	Named int
	// Prefix, Group and Filter say which entries were chosen. All three are empty for all entries.
	Prefix, Group, Filter string
	// Ended reports that the action has ended. Took and Error are zero before. An action of a process that
	// was killed never ends.
	Ended bool
	// Handled is how many entries were changed, as far as the caller had learned.
	Handled int
	// Took is how long it took, by the clock of the process.
	Took time.Duration
	// Error is why it stopped; empty is success.
	Error string
}

// Validate returns [ErrInvalidRequest] for an ID or a Verb that is empty, an ID of more than 64 bytes, a text that is no
// [core.Text] or longer than [MaxActionText], and more than [MaxActionIDs] ids.
func (a *Action) Validate() error {
	switch {
	case a.ID == "" || len(a.ID) > 64:
		return fmt.Errorf("%w: an action's ID of %d bytes; it has 1 to 64", ErrInvalidRequest, len(a.ID))
	case a.Verb == "":
		return fmt.Errorf("%w: an action without a Verb", ErrInvalidRequest)
	case len(a.IDs) > MaxActionIDs:
		return fmt.Errorf("%w: the action lists %d ids; %d is the most", ErrInvalidRequest, len(a.IDs), MaxActionIDs)
	}
	texts := append([]string{a.ID, a.Verb, a.Actor, a.From, a.Reason, a.Queue, a.Prefix, a.Group, a.Filter, a.Error}, a.IDs...)
	for _, text := range texts {
		if len(text) > MaxActionText {
			return fmt.Errorf("%w: the action has a text of %d bytes; %d is the most", ErrInvalidRequest, len(text), MaxActionText)
		}
	}
	return validateTexts("the action has", texts...)
}

// ActionsRequest asks for a page of actions.
type ActionsRequest struct {
	// Before is the At of the last action of the page before this one; 0 is the first page.
	Before core.Instant
	// Limit is how many actions to list: 0 is [MaxActions], which is also the most.
	Limit int
}

// Size is Limit with its default and bound.
func (r *ActionsRequest) Size() int {
	if r.Limit <= 0 {
		return MaxActions
	}
	return min(r.Limit, MaxActions)
}
