package bulk

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// numbers are entries of shards, listed in pages of two. Odd ones match. One above 90 has come
// since, and so have all behind one above 100. The entry 7 is gone when it is completed.
type numbers struct {
	shards [][]int
	// failed is the call that returns lost.
	failed string
	lost   error
	// acted and sampled are the entries that were acted on, or that a DryRun met.
	acted, sampled []int
	tally          *Tally
	pages          int
}

func (k *numbers) visit(ctx context.Context, r *Run) error {
	k.tally = r.Tally
	var dead []int64
	for _, s := range k.shards {
		dead = append(dead, int64(len(s)))
	}
	return Visit(ctx, r, orders(dead...), ports.PageRequest{}, k)
}

func (k *numbers) Count(c *ports.Counts) int64 { return c.Dead }

func (k *numbers) List(_ context.Context, p ports.PageRequest) (page []int, next ports.Cursor, err error) {
	k.pages++
	if k.failed == "list" {
		return nil, next, k.lost
	}

	list := k.shards[p.Shards[0]]
	from := 0
	if p.After.ID != "" {
		from = int(p.After.Key) + 1
	}

	to := min(from+2, len(list))
	if to < len(list) {
		next = ports.Cursor{Key: int64(to - 1), ID: "n"}
	}
	return slices.Clone(list[from:to]), next, nil
}

func (k *numbers) Place(v *int) ports.Cursor {
	for _, s := range k.shards {
		if at := slices.Index(s, *v); at >= 0 {
			return ports.Cursor{Key: int64(at), ID: strconv.Itoa(*v)}
		}
	}
	return ports.Cursor{}
}

func (k *numbers) Fate(v *int, _, _ core.Instant) Fate {
	switch {
	case *v > 100:
		return Beyond
	case *v > 90:
		return Passed
	}
	return Looked
}

func (k *numbers) Complete(_ context.Context, v *int, _ core.Instant) (bool, error) {
	if k.failed == "complete" {
		return false, k.lost
	}
	return *v != 7, nil
}

func (k *numbers) Match(v *int) bool { return *v%2 == 1 }

func (k *numbers) Act(_ context.Context, _ core.Shard, chosen []int) error {
	if k.failed == "act" {
		return k.lost
	}
	k.acted = append(k.acted, chosen...)
	k.tally.Met += len(chosen)
	k.tally.Pass(len(chosen), len(chosen))
	return nil
}

func (k *numbers) Sample(chosen []int) { k.sampled = append(k.sampled, chosen...) }

func TestAVisitChoosesWhatMatches(t *testing.T) {
	tests := map[string]struct {
		shards [][]int
		o      Options
		acted  []int
		// met counts the entries that were there, and done all that were dealt with. pages is the
		// number of pages that were read.
		met, done, pages int
	}{
		"all that match":               {[][]int{{1, 2, 3}, {5, 6}}, Options{}, []int{1, 3, 5}, 5, 5, 3},
		"some came since":              {[][]int{{91, 1, 93, 2, 3}}, Options{}, []int{1, 3}, 3, 5, 3},
		"all behind one came since":    {[][]int{{1, 101, 3, 5, 9}}, Options{}, []int{1}, 1, 5, 1},
		"the first came since":         {[][]int{{101, 1}, {3}}, Options{}, []int{3}, 1, 3, 2},
		"one is gone":                  {[][]int{{1, 7, 3}}, Options{}, []int{1, 3}, 2, 3, 2},
		"a limit within a page":        {[][]int{{1, 3, 5}, {9}}, Options{Limit: 1}, []int{1}, 1, 1, 1},
		"a limit at the end of a page": {[][]int{{1, 3, 5}, {9}}, Options{Limit: 2}, []int{1, 3}, 2, 2, 1},
		"a limit behind a shard":       {[][]int{{1, 2}, {9, 11}}, Options{Limit: 2}, []int{1, 9}, 3, 3, 2},
		"a stop": {
			[][]int{{1, 3, 5}, {9}},
			Options{Stop: func(int) bool { return true }},
			[]int{1, 3},
			2,
			2,
			1,
		},
		"a dry run": {[][]int{{1, 2, 3}}, Options{DryRun: true}, []int{1, 3}, 3, 3, 2},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k, r := &numbers{shards: tt.shards}, newRun(tt.o)
			if err := k.visit(t.Context(), r); err != nil {
				t.Fatal(err)
			}

			acted, other := k.acted, k.sampled
			if tt.o.DryRun {
				acted, other = other, acted
			}
			if !slices.Equal(acted, tt.acted) || other != nil || r.Handled != len(tt.acted) {
				t.Errorf("acted on %v, want %v; %v otherwise; handled %d", acted, tt.acted, other, r.Handled)
			}
			if r.Met != tt.met || r.Done != tt.done || k.pages != tt.pages {
				t.Errorf("met %d, done %d, pages %d, want %d, %d, %d",
					r.Met, r.Done, k.pages, tt.met, tt.done, tt.pages)
			}

			if !r.Limited || tt.o.DryRun {
				return
			}

			next := newRun(Options{})
			if err := next.Continue(r.Last); err != nil {
				t.Fatal(err)
			}
			if err := k.visit(t.Context(), next); err != nil {
				t.Fatal(err)
			}

			var odd []int
			for _, v := range slices.Concat(tt.shards...) {
				if k.Match(&v) {
					odd = append(odd, v)
				}
			}
			if !slices.Equal(k.acted, odd) {
				t.Errorf("continued, it has acted on %v, want %v", k.acted, odd)
			}
		})
	}
}

// While entries come, a visit considers no more than the shard had when it began.
func TestAVisitConsidersNoMoreThanTheShardHad(t *testing.T) {
	k, r := &numbers{shards: [][]int{{1, 3, 5, 9, 11}}}, newRun(Options{})
	k.tally = r.Tally
	if err := Visit(t.Context(), r, orders(3), ports.PageRequest{}, k); err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 3, 5}; !slices.Equal(k.acted, want) || k.pages != 2 {
		t.Errorf("acted on %v, want %v; %d pages", k.acted, want, k.pages)
	}
}

func TestAVisitEndsWhenAPayloadCanNotBeFetched(t *testing.T) {
	k := &numbers{shards: [][]int{{1}}, failed: "complete", lost: context.DeadlineExceeded}
	if err := k.visit(t.Context(), newRun(Options{})); err != k.lost || k.acted != nil {
		t.Errorf("it ended with %v and acted on %v", err, k.acted)
	}
}
