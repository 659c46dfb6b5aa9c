package broken

import (
	"context"
	"slices"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// changesJobs is a store that changes the request for a list of jobs, and then the page.
func changesJobs(s full, before func(*ports.JobsRequest), after func(ports.JobsRequest, *ports.JobsPage)) full {
	return replace(s, "Jobs", func(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
		asked := r
		before(&r)
		page, err := s.Jobs(ctx, r)
		after(asked, &page)
		return page, err
	})
}

func noChange(*ports.JobsRequest) {}

// repeatsShardEnds lists the last entry of a page again if the next entry is of another shard.
func repeatsShardEnds(s full) full {
	shard := func(v *ports.JobView) int { return core.ShardOf(v.ID, 3) }
	var last ports.JobView
	return changesJobs(s, noChange, func(r ports.JobsRequest, page *ports.JobsPage) {
		if len(page.Jobs) == 0 {
			return
		}
		if r.After != (ports.Cursor{}) && shard(&last) != shard(&page.Jobs[0]) {
			page.Jobs[0] = last
		}
		last = page.Jobs[len(page.Jobs)-1]
	})
}

// skipsBesideWaiting skips entries of a later page if a job of the queue waits for a claim.
func skipsBesideWaiting(s full) full {
	return changesJobs(s, noChange, func(r ports.JobsRequest, page *ports.JobsPage) {
		claimed, err := s.Claimed(context.Background(), ports.PageRequest{Queue: r.Queue})
		if err != nil || len(claimed.Claims) == 0 || r.After == (ports.Cursor{}) || len(page.Jobs) < 3 {
			return
		}
		page.Jobs = slices.Delete(page.Jobs, 1, len(page.Jobs)-1)
	})
}

// endsAtShortPages ends a list at the first page that is not full.
func endsAtShortPages(s full) full {
	return changesJobs(s, noChange, func(r ports.JobsRequest, page *ports.JobsPage) {
		if len(page.Jobs) < r.Size() {
			page.Next = ports.Cursor{}
		}
	})
}

// startsBehind begins a list by id after the value From instead of at it.
func startsBehind(s full) full {
	return changesJobs(s, func(r *ports.JobsRequest) {
		if r.From != nil && r.After == (ports.Cursor{}) && r.ByID() {
			r.After, r.From = *r.From, nil
		}
	}, func(ports.JobsRequest, *ports.JobsPage) {})
}

// listsOtherPrefixes begins a list at the prefix instead of limiting the list to it.
func listsOtherPrefixes(s full) full {
	return changesJobs(s, func(r *ports.JobsRequest) {
		if r.Prefix != "" && r.From == nil {
			r.From, r.Prefix = &ports.Cursor{ID: r.Prefix}, ""
		}
	}, func(ports.JobsRequest, *ports.JobsPage) {})
}

// listsAllShards lists the claimed jobs of all shards whichever are requested.
func listsAllShards(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		if len(r.Shards) > 0 {
			r.Shards = nil
		}
		return s.Claimed(ctx, r)
	})
}

// countsAllShards counts all shards whichever are requested.
func countsAllShards(s full) full {
	return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		r.Shards = nil
		return s.Stats(ctx, r)
	})
}

// cutsNoErrors returns error texts whole.
func cutsNoErrors(s full) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		r.ErrorBytes = 0
		return s.Morgue(ctx, r)
	})
}

// countsAllPayloads counts more payloads than requested.
func countsAllPayloads(s full) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		r.MaxCount = 0
		return s.Morgue(ctx, r)
	})
}

// listsFailed lists jobs with a failure among the fresh ones.
func listsFailed(s full) full {
	return changesJobs(s, func(r *ports.JobsRequest) { r.Fresh = false }, func(ports.JobsRequest, *ports.JobsPage) {})
}

// hidesRows ends a list after one entry if a shard can't be reached.
func hidesRows(s full) full {
	return changesJobs(s, noChange, func(_ ports.JobsRequest, page *ports.JobsPage) {
		if len(page.Unreached) > 0 && len(page.Jobs) > 0 {
			page.Jobs, page.Next = page.Jobs[:1], ports.Cursor{}
		}
	})
}

// hidesUnreached does not report shards that it can't reach.
func hidesUnreached(s full) full {
	return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		all, err := s.Stats(ctx, r)
		for i := range all {
			all[i].Unreached = nil
		}
		return all, err
	})
}

// failsListsForOne fails a list if it can't reach one of the shards.
func failsListsForOne(s full) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		page, err := s.Morgue(ctx, r)
		if err == nil && slices.ContainsFunc(page.Unreached, func(core.Shard) bool { return true }) {
			return ports.MorguePage{}, harness.ErrNoReply
		}
		return page, err
	})
}

func brokenLists() []brokenStore {
	return []brokenStore{
		{
			"repeats an entry at a shard's end",
			"list/lists continue after the end of a shard",
			wrapped(repeatsShardEnds),
		},
		{"ends a list at a short page", "list/fresh jobs can be listed alone", wrapped(endsAtShortPages)},
		{"begins after the value asked for", "list/lists begin at a value, both ways", wrapped(startsBehind)},
		{"lists ids with other prefixes", "list/lists by id can be limited to a prefix", wrapped(listsOtherPrefixes)},
		{
			"lists all shards when asked for some",
			"list/lists and stats cover the given shards only",
			wrapped(listsAllShards),
		},
		{
			"counts all shards when asked for some",
			"list/lists and stats cover the given shards only",
			wrapped(countsAllShards),
		},
		{
			"does not truncate long errors",
			"list/error texts are truncated at the limit asked for",
			wrapped(cutsNoErrors),
		},
		{
			"lists only the texts of failures",
			"list/error texts are truncated at the limit asked for",
			wrapped(listsOnlyTexts),
		},
		{
			"counts payloads beyond the limit",
			"list/payloads are counted up to the limit asked for",
			wrapped(countsAllPayloads),
		},
		{"lists failed jobs among fresh ones", "list/fresh jobs can be listed alone", wrapped(listsFailed)},
		{
			"hides rows beside an unreached shard",
			"unreached/lists return the entries of the other shards",
			wrapped(hidesRows),
		},
		{"hides which shards are unreached", "unreached/stats count the other shards", wrapped(hidesUnreached)},
		{
			"fails a history for one unreached shard",
			"unreached/a history names the shards that it lacks",
			wrapped(failsHistoryForOne),
		},
		{
			"hides what a history lacks",
			"unreached/a history names the shards that it lacks",
			wrapped(hidesUnreachedHistory),
		},
		{
			"fails a list for one unreached shard",
			"unreached/lists return the entries of the other shards",
			wrapped(failsListsForOne),
		},
	}
}

// pagesByNumber begins a page after the number of jobs that it has listed before, even if some of
// these are gone.
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
		return ports.JobsPage{
			Jobs: page.Jobs[from:to],
			Next: ports.Cursor{Key: int64(last.PerformAt), ID: last.ID},
		}, err
	})
}

// beginsAnewAtGone lists claimed jobs from the start if the job at the cursor is gone.
func beginsAnewAtGone(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		if found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: r.After.ID, Payloads: 1000}); err == nil &&
			found.Claim == nil {
			r.After = ports.Cursor{}
		}
		return s.Claimed(ctx, r)
	})
}

// skipsOneBehindGone skips the dead letter after the cursor if the one at the cursor is gone.
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

// lettersBehindFrom begins behind the requested time of a list of dead letters.
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
		{"pages by number", "list/jobs that stay are listed once while others come and go", wrapped(pagesByNumber)},
		{
			"restarts a list if its cursor's entry is gone",
			"list/claimed jobs that stay are listed once while others come and go",
			wrapped(beginsAnewAtGone),
		},
		{
			"skips an entry if its cursor's entry is gone",
			"list/dead letters that stay are listed once while others come and go",
			wrapped(skipsOneBehindGone),
		},
		{
			"begins dead letters after the time asked for",
			"list/claimed jobs and dead letters begin at a value, both ways",
			wrapped(lettersBehindFrom),
		},
		{
			"forgets a prefix after the first page",
			"list/a prefix limits each list by id, after any cursor",
			wrapped(forgetsPrefixBehind),
		},
	}
}

// pagesOverlap returns cursors before the last entry of the page.
func pagesOverlap(s full) full {
	return replace(s, "Jobs", func(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
		page, err := s.Jobs(ctx, r)
		if page.Next.ID != "" {
			page.Next.ID = page.Next.ID[:len(page.Next.ID)-1]
		}
		return page, err
	})
}
