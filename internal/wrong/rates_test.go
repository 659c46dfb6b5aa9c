package wrong

import (
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func TestRatedQueues(t *testing.T) {
	stats := []inspect.QueueStats{
		queue("late", 2, 2*time.Minute, 5),
		queue("well", 2, time.Second, 5),
		queue("paused", 2, 2*time.Minute, 5),
		queue("none", 2, 2*time.Minute, 5),
		queue("gone", 2, 2*time.Minute, 5),
	}
	stats[2].Queue.Paused = true

	alive, gone := server("blue", inspect.NodeAlive), server("red", inspect.NodeGone)
	for _, name := range []string{"late", "well", "paused"} {
		alive.Status.Queues = append(alive.Status.Queues, ports.QueueStatus{Queue: name, Rate: "10/1s"})
	}
	alive.Status.Queues = append(alive.Status.Queues, ports.QueueStatus{Queue: "none"})
	gone.Status.Queues = []ports.QueueStatus{{Queue: "gone", Rate: "10/1s"}}

	if got := RatedQueues(stats, []inspect.Node{gone, alive}); !slices.Equal(got, []string{"late"}) {
		t.Errorf("the late queues with a rate are %q, want only late", got)
	}
}
