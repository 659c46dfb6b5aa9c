package wrong

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// The jobs of a queue are listed only where one may be at its last retry, and from there on.
func TestLastRetryList(t *testing.T) {
	serves := func(state inspect.NodeState, retries int) inspect.Node {
		n := server("blue", state, "orders")
		n.Status.Queues = []ports.QueueStatus{{Queue: "emails", MaxRetries: 99}, {Queue: "orders", MaxRetries: retries}}
		return n
	}

	for name, tt := range map[string]struct {
		failed int64
		nodes  []inspect.Node
		from   int
		ok     bool
	}{
		"jobs have failed":           {1, []inspect.Node{serves(inspect.NodeAlive, 25)}, 25, true},
		"the least retries":          {1, []inspect.Node{serves(inspect.NodeAlive, 5)}, 5, true},
		"few retries":                {1, []inspect.Node{serves(inspect.NodeAlive, 4)}, 4, false},
		"no retries":                 {1, []inspect.Node{serves(inspect.NodeAlive, 0)}, 0, false},
		"no job has failed":          {0, []inspect.Node{serves(inspect.NodeAlive, 25)}, 25, false},
		"nobody announces the queue": {1, []inspect.Node{server("red", inspect.NodeAlive, "emails")}, 0, false},
		"who announced it is gone":   {1, []inspect.Node{serves(inspect.NodeGone, 25)}, 0, false},
		"a server drains":            {1, []inspect.Node{serves(inspect.NodeDraining, 25)}, 25, true},
		"servers differ: one buries it": {
			1,
			[]inspect.Node{serves(inspect.NodeAlive, 5), serves(inspect.NodeAlive, 25), serves(inspect.NodeAlive, 9)},
			25,
			true,
		},
	} {
		s := queue("orders", 4, 0, 0)
		s.Shards[2].Retrying = tt.failed
		o, ok := LastRetryList(&s, tt.nodes)
		if ok != tt.ok || ok && o.FromRetries != tt.from {
			t.Errorf("%s: %v from %d retries, want %v from %d", name, ok, o.FromRetries, tt.ok, tt.from)
		}
		if want := []int{2}; ok && (!slices.Equal(o.Shards, want) || o.Limit != 101 ||
			o.SortBy != inspect.RetryingByCount || o.Payloads != 0) {
			t.Errorf("%s: the list has no bounds: %+v", name, o)
		}
	}
}

func TestLastRetryOf(t *testing.T) {
	boom := errors.New("boom")

	for name, tt := range map[string]struct {
		jobs int
		err  error
		want LastRetry
	}{
		"none":           {0, nil, LastRetry{Max: 7}},
		"two":            {2, nil, LastRetry{Count: 2, IDs: []string{"0", "1"}, Max: 7}},
		"a hundred":      {100, nil, LastRetry{Count: 100, IDs: []string{"0", "1", "2"}, Max: 7}},
		"more":           {101, nil, LastRetry{Count: 100, More: true, IDs: []string{"0", "1", "2"}, Max: 7}},
		"a part is away": {1, &inspect.PartialError{}, LastRetry{Count: 1, IDs: []string{"0"}, Max: 7}},
		"no answer":      {1, boom, LastRetry{}},
	} {
		got, err := LastRetryOf(inspect.ListOptions{FromRetries: 7}, func(yield func(inspect.QueuedJob, error) bool) {
			for n := range tt.jobs {
				if !yield(inspect.QueuedJob{ID: fmt.Sprint(n)}, nil) {
					return
				}
			}
			if tt.err != nil {
				yield(inspect.QueuedJob{}, tt.err)
			}
		})

		if diff := cmp.Diff(tt.want, got); diff != "" || errors.Is(err, boom) != (tt.err == boom) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
