package conformance

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// pagesByNumber lists jobs from the number of those that were listed before, whatever has gone
// meanwhile.
func pagesByNumber(s full) full {
	listed := map[string]int{}
	return replace(s, "Jobs", func(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
		if r.After == (ports.Cursor{}) {
			listed[r.Queue] = 0
		}
		size := r.Size()
		r.After, r.Limit = ports.Cursor{}, ports.MaxPage
		page, err := s.Jobs(ctx, r)
		from := min(listed[r.Queue], len(page.Jobs))
		to := min(from+size, len(page.Jobs))
		listed[r.Queue] = to
		if to == len(page.Jobs) {
			return ports.JobsPage{Jobs: page.Jobs[from:]}, err
		}
		last := page.Jobs[to-1]
		return ports.JobsPage{Jobs: page.Jobs[from:to], Next: ports.Cursor{Key: int64(last.PerformAt), ID: last.ID}}, err
	})
}

// beginsAnewAtGone lists claimed jobs from the start where the one under the cursor is gone.
func beginsAnewAtGone(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		if found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: r.After.ID, Payloads: 1000}); err == nil && found.Claim == nil {
			r.After = ports.Cursor{}
		}
		return s.Claimed(ctx, r)
	})
}

// skipsOneBehindGone passes over the dead letter that follows the cursor where the one under it is
// gone.
func skipsOneBehindGone(s full) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		page, err := s.Morgue(ctx, r)
		found, gone := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: r.After.ID, Payloads: 1000})
		if gone == nil && found.DeadLetter == nil && len(page.DeadLetters) > 1 {
			page.DeadLetters = page.DeadLetters[1:]
		}
		return page, err
	})
}

// lettersBehindFrom begins behind the time that a list of dead letters is asked from.
func lettersBehindFrom(s full) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		if r.From != nil && !r.ByID {
			step := int64(1)
			if r.Descending {
				step = -1
			}
			r.From = &ports.Cursor{Key: max(0, r.From.Key+step)}
		}
		return s.Morgue(ctx, r)
	})
}

// forgetsPrefixBehind lists ids with other prefixes on later pages of jobs with a failure.
func forgetsPrefixBehind(s full) full {
	return changesJobs(s, func(r *ports.JobsRequest) {
		if r.SortBy == ports.RetryingByID && r.After != (ports.Cursor{}) {
			r.Prefix = ""
		}
	}, func(ports.JobsRequest, *ports.JobsPage) {})
}

func brokenPages() []brokenStore {
	return []brokenStore{
		{"pages by number", "list/jobs that stay come once while others come and go", wrapped(pagesByNumber)},
		{"begins a list anew where its cursor is gone", "list/claimed jobs that stay come once while others come and go", wrapped(beginsAnewAtGone)},
		{"skips an entry where its cursor is gone", "list/dead letters that stay come once while others come and go", wrapped(skipsOneBehindGone)},
		{"begins dead letters behind the time asked for", "list/claimed jobs and dead letters begin at a value, both ways", wrapped(lettersBehindFrom)},
		{"forgets a prefix behind the first page", "list/a prefix is of each list by id, behind any cursor", wrapped(forgetsPrefixBehind)},
	}
}
