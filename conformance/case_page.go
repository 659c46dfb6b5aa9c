package conformance

import (
	"fmt"
	"slices"

	"github.com/skeinq/skein/ports"
)

// listed is a page of any list: the ids, and where the next begins.
type listed struct {
	ids  []string
	next ports.Cursor
}

// pager gives the page of a list.
type pager func(r ports.PageRequest) listed

func (e *env) jobPages(order ports.SortBy) pager {
	return func(r ports.PageRequest) listed {
		page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: r, SortBy: order})
		e.must(err, "Jobs")
		l := listed{next: page.Next}
		for _, j := range page.Jobs {
			l.ids = append(l.ids, j.ID)
		}
		return l
	}
}

func (e *env) claimedPages(r ports.PageRequest) listed {
	page, err := e.store.Claimed(e.ctx, r)
	e.must(err, "Claimed")
	l := listed{next: page.Next}
	for _, c := range page.Claims {
		l.ids = append(l.ids, c.ID)
	}
	return l
}

func (e *env) morguePages(byID bool) pager {
	return func(r ports.PageRequest) listed {
		page, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: r, ByID: byID})
		e.must(err, "Morgue")
		l := listed{next: page.Next}
		for _, d := range page.DeadLetters {
			l.ids = append(l.ids, d.ID)
		}
		return l
	}
}

// lists checks a list: whole and in pages of every size, both ways.
func (e *env) lists(what, queue string, pages pager, want []string) {
	e.tb.Helper()
	for _, descending := range []bool{false, true} {
		for limit := 1; limit <= len(want)+1; limit++ {
			r := ports.PageRequest{Queue: queue, Descending: descending, Limit: limit}
			e.same(fmt.Sprintf("%s, descending %t, %d a page", what, descending, limit), allPages(r, pages, len(want)), want)
		}
		want = slices.Clone(want)
		slices.Reverse(want)
	}
}

// allPages follows the cursors to the last page, which must say that it is, or
// to a few pages too many.
func allPages(r ports.PageRequest, pages pager, entries int) []string {
	var got []string
	for range entries/r.Limit + 2 {
		page := pages(r)
		if len(page.ids) == 0 {
			return append(got, "an empty page")
		}
		got = append(got, page.ids...)
		if page.next == (ports.Cursor{}) {
			return got
		}
		r.After = page.next
	}
	return append(got, "too many pages")
}
