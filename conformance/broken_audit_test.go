package conformance

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// audits changes each action before it is stored.
func audits(s full, change func(*ports.Action)) full {
	return replaceErr(s, "Audit", func(ctx context.Context, a ports.Action) error {
		change(&a)
		return s.Audit(ctx, a)
	})
}

// showsActions changes a page before it is returned.
func showsActions(s full, change func(ports.ActionsRequest, []ports.Action) []ports.Action) full {
	return replace(s, "Actions", func(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
		page, err := s.Actions(ctx, r)
		return change(r, page), err
	})
}

func forgetsReasons(s full) full { return audits(s, func(a *ports.Action) { a.Reason = "" }) }

// auditsEndsAnew stores the end of an action beside its beginning.
func auditsEndsAnew(s full) full {
	return audits(s, func(a *ports.Action) {
		if a.Ended {
			a.ID += " ended"
		}
	})
}

// datesActionsByTheirEnd has an action begin when it was stored last.
func datesActionsByTheirEnd(s full) full {
	return showsActions(s, func(_ ports.ActionsRequest, page []ports.Action) []ports.Action {
		for i := range page {
			if page[i].Ended {
				page[i].At = page[i].At.Add(page[i].Took)
			}
		}
		return page
	})
}

// auditsOnlyTheFirst ignores what is said of an action again.
func auditsOnlyTheFirst(s full) full {
	seen := map[string]bool{}
	return replaceErr(s, "Audit", func(ctx context.Context, a ports.Action) error {
		if seen[a.ID] {
			return nil
		}
		seen[a.ID] = true
		return s.Audit(ctx, a)
	})
}

// keepsActionsForEver lists what the store has removed, once more.
func keepsActionsForEver(s full) full {
	var all []ports.Action
	kept := replaceErr(s, "Audit", func(ctx context.Context, a ports.Action) error {
		err := s.Audit(ctx, a)
		if page, listed := s.Actions(ctx, ports.ActionsRequest{Limit: 1}); err == nil && listed == nil && len(page) == 1 && page[0].ID == a.ID {
			all = append(all, page[0])
		}
		return err
	})
	return showsActions(kept, func(r ports.ActionsRequest, page []ports.Action) []ports.Action {
		if len(page) == 0 && len(all) > 0 && all[0].At < r.Before {
			return all[:1]
		}
		return page
	})
}

func listsOldActionsFirst(s full) full {
	return showsActions(s, func(_ ports.ActionsRequest, page []ports.Action) []ports.Action {
		for i, j := 0, len(page)-1; i < j; i, j = i+1, j-1 {
			page[i], page[j] = page[j], page[i]
		}
		return page
	})
}

// listsTheLastActionTwice begins a page with the action that the one before ended with.
func listsTheLastActionTwice(s full) full {
	return replace(s, "Actions", func(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
		if r.Before > 1 {
			r.Before++
		}
		return s.Actions(ctx, r)
	})
}

func takesActionsWithoutAVerb(s full) full {
	return audits(s, func(a *ports.Action) {
		if a.Verb == "" {
			a.Verb = "something"
		}
	})
}
