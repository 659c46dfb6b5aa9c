package inspect

import (
	"context"
	"strings"

	"github.com/skeinq/skein/ports"
)

// sayLater adds to the result of an action on all dead letters the number of those that it has
// skipped because they changed after it began, whether they match or not. It reads only the newest
// dead letters, and only if there were more dead letters than the action has handled. If they can't
// be read, it adds nothing.
func (i *Inspector) sayLater(ctx context.Context, a *action, r *Result, failed error) {
	if failed != nil || r.Handled >= r.Total || r.Checkpoint != "" {
		return
	}
	at := &a.going.at
	page, err := ask(i, func(s Store) (ports.MorguePage, error) {
		newest := ports.PageRequest{Queue: at.Queue, Descending: true, ErrorBytes: -1, MaxCount: -1}
		return s.Morgue(ctx, ports.MorgueRequest{PageRequest: newest, Group: at.Group})
	})
	if err != nil {
		return
	}
	for n := range page.DeadLetters {
		if d := &page.DeadLetters[n]; d.ChangedAt >= at.Before && strings.HasPrefix(d.ID, at.Prefix) {
			r.Later++
		}
	}
}
