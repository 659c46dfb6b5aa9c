package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// The page of a queue says what its jobs wait for, each with a link to the list that has them.
func TestAQueueSaysWhatItsJobsWaitFor(t *testing.T) {
	h := newHouse(t, Options{})
	says(t, h.get("/queue?q=orders"), "What the jobs wait for no job waits")

	h.hold("boom", "held")
	h.ended(core.Failed, "boom", "failed")
	h.push("orders", "left", 0, "p")
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	h.advance(time.Hour)
	h.push("orders", "later", time.Hour, "p")
	h.push("orders", "now", 0, "p")
	h.board.looker.acted()

	page := h.get("/queue?q=orders")
	says(t, page, "What the jobs wait for", "their time, or a lane 2 0 s ago jobs", "an operator: they are held after their last retry 1",
		"a new owner of their shard: their server is gone")
	for _, list := range []string{"jobs?list=fresh&amp;q=orders", "jobs?list=held&amp;q=orders", "busy?q=orders"} {
		if !strings.Contains(page, `href="`+list+`"`) {
			t.Errorf("no link to %s", list)
		}
	}

	if err := h.store.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	h.board.looker.acted()
	says(t, h.get("/queue?q=orders"), "the end of the pause 2 when the queue is resumed jobs")
}

// The rule of merges is changed by a command, which the page names.
func TestAQueueNamesTheCommandThatChangesItsMergeRule(t *testing.T) {
	h := newHouse(t, Options{})
	says(t, h.get("/queue?q=orders"), "payloads are merged by union",
		"merge rule union skein queue merge orders RULE changes it")
}

// A setting has the value that most servers have, and names those with another.
func TestAQueueSaysWhichServersDiffer(t *testing.T) {
	h := newHouse(t, Options{})
	for owner, parallel := range map[string]int{"a": 16, "b": 16, "c": 8} {
		h.announce(ports.Node{Owner: owner, Name: "worker-" + owner, Queues: []string{"orders"}, Status: ports.NodeStatus{
			Queues: []ports.QueueStatus{serves("orders", func(q *ports.QueueStatus) { q.Parallel = parallel })},
		}})
	}
	page := h.get("/queue?q=orders")
	says(t, page, "parallel 16 code; ▲ worker-c has 8", "retries 25 code")
	if !strings.Contains(page, `▲ <a href="server?node=c">`) {
		t.Error("the server that differs has no link")
	}
}

// Scheduled are the jobs that were pushed for later, not those that wait for a retry, and not held
// ones.
func TestScheduledJobsAreThosePushedForLater(t *testing.T) {
	h := newHouse(t, Options{})
	h.hold("boom", "held")
	h.ended(core.Failed, "boom", "failed")
	h.push("orders", "later", time.Hour, "p")
	for _, target := range []string{"", "&desc=1"} {
		if got := keys(h.get("/jobs?q=orders&list=scheduled"+target), "rows"); len(got) != 1 || got[0] != "later" {
			t.Errorf("scheduled%s are %v", target, got)
		}
	}
}
