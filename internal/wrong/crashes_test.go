package wrong

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/inspect"
)

// The claimed jobs of a queue are listed only if one of its servers was lost, and only where jobs
// are claimed.
func TestSuspectsList(t *testing.T) {
	for name, tt := range map[string]struct {
		claimed int64
		nodes   []inspect.Node
		ok      bool
	}{
		"a server was lost": {
			2,
			[]inspect.Node{server("blue", inspect.NodeGone, "emails", "orders")},
			true,
		},
		"a server of another queue": {2, []inspect.Node{server("blue", inspect.NodeGone, "emails")}, false},
		"no server was lost": {
			2,
			[]inspect.Node{server("blue", inspect.NodeAlive, "orders"), server("red", inspect.NodeDraining, "orders")},
			false,
		},
		"no job is claimed": {0, []inspect.Node{server("blue", inspect.NodeGone, "orders")}, false},
		"a server was lost, another runs": {
			1,
			[]inspect.Node{server("red", inspect.NodeAlive, "orders"), server("red", inspect.NodeGone, "orders")},
			true,
		},
	} {
		s := queue("orders", 4, 0, 0)
		s.Shards[2].Claimed = tt.claimed
		o, ok := SuspectsList(&s, tt.nodes)
		if ok != tt.ok || ok &&
			(!slices.Equal(o.Shards, []int{2}) || o.Limit != 1000 || o.ErrorBytes >= 0 || o.MaxCount >= 0) {
			t.Errorf("%s: %v, %+v; want %v, with bounds", name, ok, o, tt.ok)
		}
	}
}

func TestSuspectsOf(t *testing.T) {
	boom := errors.New("boom")

	for name, tt := range map[string]struct {
		recoveries []int
		err        error
		want       Suspects
	}{
		"none":           {nil, nil, Suspects{}},
		"recovered once": {[]int{0, 1, 1}, nil, Suspects{}},
		"one of several": {[]int{0, 2, 1}, nil, Suspects{Count: 1, ID: "b", Recoveries: 2}},
		"the most":       {[]int{2, 0, 3, 2}, nil, Suspects{Count: 3, ID: "c", Recoveries: 3}},
		"a part is away": {[]int{2}, &inspect.PartialError{}, Suspects{Count: 1, ID: "a", Recoveries: 2}},
		"no answer":      {[]int{2}, boom, Suspects{}},
	} {
		got, err := SuspectsOf(func(yield func(inspect.ClaimedJob, error) bool) {
			for at, n := range tt.recoveries {
				job := inspect.ClaimedJob{}
				job.ID, job.Recoveries = string(rune('a'+at)), n
				if !yield(job, nil) {
					return
				}
			}
			if tt.err != nil {
				yield(inspect.ClaimedJob{}, tt.err)
			}
		})

		if diff := cmp.Diff(tt.want, got); diff != "" || errors.Is(err, boom) != (tt.err == boom) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
