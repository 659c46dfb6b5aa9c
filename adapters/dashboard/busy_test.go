package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

// The claims of a server that is gone are shown with the server that takes them over: the shard's
// owner, else the queue's servers, else nobody.
func TestWhoTakesOrphans(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "old", Owner: "owner", Queues: []string{"orders"}})
	h.push("orders", "a", 0, "p")
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	h.advance(time.Hour + time.Minute)
	says(t, h.get("/busy"), "orders a", "▨ no server runs this queue")
	says(t, h.get("/"), "orders No server runs this queue: 1 job waits, 1 of them left by old, which stopped responding",
		"Oldest due job 1 min orders, not served Waiting 1 in 1 queue Running 0")
	says(t, h.get("/queue?q=orders"), "Oldest due job 1 min due for so long Waiting 1", "orphaned 1")
	h.announce(ports.Node{Name: "blue", Owner: "o2", Queues: []string{"orders"}})
	says(t, h.get("/busy"), "1893553440000000 blue put back")
	h.announce(ports.Node{Name: "green", Owner: "o3", Queues: []string{"orders"}})
	says(t, h.get("/busy"), "1893553440000000 one of blue, green put back")
}

// A server that is gone and has left nothing is not among those that run.
func TestAServerThatIsGoneRunsNothing(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "vanished", Owner: "o1", Queues: []string{"orders"}})
	h.advance(2 * time.Minute)
	h.announce(ports.Node{Name: "blue", Owner: "o2", Queues: []string{"orders"}})
	page := h.get("/busy")
	says(t, page, "blue alive")
	saysNot(t, page, "vanished")
}

func TestWhatRunsLong(t *testing.T) {
	for _, tt := range []struct {
		took, p99 time.Duration
		want      bool
	}{
		{900 * time.Millisecond, time.Millisecond, false}, {1100 * time.Millisecond, time.Millisecond, true},
		{49 * time.Second, 98 * time.Millisecond, true},
		{49 * time.Second, 10 * time.Second, false},
		{51 * time.Second, 10 * time.Second, true},
		{59 * time.Second, 0, false}, {61 * time.Second, 0, true},
	} {
		if got := slow(tt.took, tt.p99); got != tt.want {
			t.Errorf("%v beside a p99 of %v is long: %v", tt.took, tt.p99, got)
		}
	}
	var marks []string
	for _, m := range timeScale() {
		marks = append(marks, fmt.Sprintf("%s %v", m.Text, m.X))
	}
	if got := strings.Join(marks, ", "); got != "1 s 69, 1 min 131, 1 h 192" {
		t.Errorf("the scale of time is %s", got)
	}
}
