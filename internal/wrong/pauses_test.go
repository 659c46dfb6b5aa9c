package wrong

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/inspect"
)

// The pause of a queue is the first one since it was resumed or was a new queue, as the audit has
// it.
func TestPausesOf(t *testing.T) {
	stats := func(paused ...string) (list []inspect.QueueStats) {
		for _, name := range append(paused, "active") {
			list = append(list, inspect.QueueStats{Queue: inspect.Queue{Name: name, Paused: name != "active"}})
		}
		return list
	}

	by := func(verb, queue, who string) inspect.Action {
		return inspect.Action{Verb: verb, Queue: queue, Actor: inspect.Actor{Name: who}, Ended: true}
	}

	failed := by("pause", "orders", "eve")
	failed.Error = "boom"

	for name, tt := range map[string]struct {
		paused  []string
		actions []inspect.Action // the newest first
		want    map[string]string
		read    int
	}{
		"one": {
			[]string{"orders"},
			[]inspect.Action{by("pause", "orders", "ann")},
			map[string]string{"orders": "ann"},
			1,
		},
		"repeated, after another's": {[]string{"orders"}, []inspect.Action{
			by("pause", "orders", "cat"),
			by("revive", "orders", "bob"),
			by("pause", "orders", "bob"),
			by("resume", "orders", "ann"),
			by("pause", "orders", "ann"),
		}, map[string]string{"orders": "bob"}, 4},
		"of a queue that was forgotten": {
			[]string{"orders"},
			[]inspect.Action{by("forget", "orders", "ann"), by("pause", "orders", "ann")},
			map[string]string{},
			1,
		},
		"one that failed": {
			[]string{"orders"},
			[]inspect.Action{failed, by("pause", "orders", "ann")},
			map[string]string{"orders": "ann"},
			2,
		},
		"two queues": {[]string{"orders", "mail"}, []inspect.Action{
			by("pause", "mail", "ann"),
			by("resume", "orders", "eve"),
			by("pause", "active", "eve"),
			by("resume", "mail", "eve"),
			by("pause", "orders", "eve"),
		}, map[string]string{"mail": "ann"}, 4},
		"none that is paused": {nil, []inspect.Action{by("pause", "orders", "ann")}, map[string]string{}, 0},
	} {
		read := 0
		got, err := PausesOf(stats(tt.paused...), func(yield func(inspect.Action, error) bool) {
			for a := range slices.Values(tt.actions) {
				if read++; !yield(a, nil) {
					return
				}
			}
		})

		who := map[string]string{}
		for queue, a := range got {
			who[queue] = a.Actor.Name
		}

		if diff := cmp.Diff(tt.want, who); diff != "" || err != nil || read != tt.read {
			t.Errorf("%s: %v, %d actions read, want %d (-want +got):\n%s", name, err, read, tt.read, diff)
		}
	}

	boom := errors.New("boom")
	if _, err := PausesOf(stats("orders"), func(yield func(inspect.Action, error) bool) {
		yield(inspect.Action{}, boom)
	}); !errors.Is(err, boom) {
		t.Errorf("an audit that can't be read: %v", err)
	}
}
