package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// serves is the status of a server for a queue.
func serves(queue string, change func(*ports.QueueStatus)) ports.QueueStatus {
	q := ports.QueueStatus{Queue: queue, MaxRetries: 25, MaxRecoveries: 3, BatchSize: 1}
	if change != nil {
		change(&q)
	}
	return q
}

// The page of a server says how it is, how it differs from the others, what it runs and holds.
func TestAServerHasAPage(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 2)
	h.push("orders", "export", 0, "p")
	var claims []core.Claim
	shard := -1
	for len(claims) == 0 {
		shard++
		claims = h.turn("orders", shard, 1)
	}
	h.advance(9*time.Minute + 42*time.Second)
	began := core.InstantOf(h.clock().Add(-9*time.Minute - 42*time.Second))
	h.announce(ports.Node{Name: "worker-c", Host: "c.shop", PID: 7, Lanes: 16, Version: "v1.4.2",
		Queues: []string{"orders", "mails"}, Status: ports.NodeStatus{
			Busy: 5, Running: 6, Memory: 40 << 20, Goroutines: 212, ClockAhead: 3 * time.Millisecond, StartedAt: began,
			Queues: []ports.QueueStatus{serves("orders", func(q *ports.QueueStatus) { q.Parallel = 8 }), serves("mails", nil)},
			Longest: []ports.RunningJob{{
				Shard: core.Shard{Queue: "orders", Index: shard}, ID: "export", Receipt: claims[0].Receipt, Began: began,
			}},
		}})
	h.announce(ports.Node{Owner: "o2", Name: "worker-a", Version: "v1.5.0", Queues: []string{"orders"},
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{serves("orders", func(q *ports.QueueStatus) { q.Parallel = 16 })}}})

	page := h.get("/server?node=owner")
	says(t, page, "Servers / c.shop:7 worker-c works, and runs another version than the others",
		"✓ alive", "▲ v1.4.2", "The others run v1.5.0.",
		"Heartbeat valid for 1 min", "Clock 3 ms off the store's", "Version v1.4.2, others v1.5.0", "Settings 1 differ",
		"Lanes busy 5 of 16", "Longest 9 min 42 s orders", "Memory 40 MiB 212 goroutines", "Started 9 min 42 s ago",
		"16 lanes, 5 busy", "No list of jobs is by server: these are among the first 200",
		"orders : parallel 8 16")
	says(t, page, fmt.Sprintf("Shards held %d of 5", shard+1), fmt.Sprintf("orders %d of 3", shard+1), "mails 0 of 2")
	if !strings.Contains(page, `href="id?id=export&amp;q=orders"`) {
		t.Errorf("the job that runs has no link: %s", words(page))
	}
	if other := h.get("/server?node=o2"); !strings.Contains(words(other), "Settings 1 differ") {
		t.Errorf("the other one: %s", words(other))
	}

	for _, from := range []string{"/nodes", "/queue?q=orders", "/busy", "/id?q=orders&id=export", "/shards?q=orders"} {
		if !strings.Contains(h.get(from), `href="server?node=owner"`) {
			t.Errorf("%s has no link to the server", from)
		}
	}
	says(t, h.get("/server?node=worker-a"), "worker-a works")
	if w := answerOf(h.board, request(http.MethodGet, "/server?node=nobody", nil)); w.Code != http.StatusNotFound {
		t.Errorf("a server that does not exist: status %d", w.Code)
	}

	drained := h.do("op", "drain", "node", "owner", "back", "server", "back.node", "owner")
	says(t, drained, "worker-c drains", "‖ draining", "Work again")
}

// What a server that is gone has left is one click from each line that names it.
func TestOrphansAreOneClickFromTheirServer(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	h.announce(ports.Node{Name: "reports-1", Lanes: 4, Queues: []string{"orders", "mails"}})
	h.push("orders", "report-5", 0, "p")
	h.push("mails", "mail-1", 0, "p")
	h.turn("mails", 0, 9)
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	h.advance(time.Hour)

	overview := h.get("/")
	says(t, overview, "reports-1 stopped responding: no server runs 2 queues (mails, orders); 2 jobs wait, 2 of them left behind")
	for _, page := range []string{overview, h.get("/queue?q=orders"), h.get("/queue?q=mails")} {
		link := regexp.MustCompile(`<section class="panel wrong".*?<a href="(server\?node=\w+)"`).
			FindStringSubmatch(strings.ReplaceAll(page, "\n", " "))
		if link == nil {
			t.Fatalf("no link to the server: %s", words(page))
		}
		says(t, h.get("/"+link[1]), "reports-1 stopped responding 59 min ago", "▨ gone", "Orphans 2", "Jobs that it has left",
			"report-5", "mail-1", "Shards that it has left", "Settings not compared")
	}
}

// A user with rights for some queues sees only the part of a server that is about them.
func TestAServerIsShownByTheRightsForItsQueues(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	h.declare("secrets", 1)
	h.push("secrets", "hidden-id", 0, "p")
	h.push("orders", "seen", 0, "p")
	h.turn("secrets", 0, 1)
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	h.announce(ports.Node{Name: "blue", Lanes: 16, Queues: []string{"orders", "secrets"}, Status: ports.NodeStatus{
		Busy: 7, Running: 7, Claimed: 7,
		Queues: []ports.QueueStatus{
			serves("orders", func(q *ports.QueueStatus) { q.Busy = 1 }), serves("secrets", func(q *ports.QueueStatus) { q.Busy = 6 }),
		},
		Longest: []ports.RunningJob{{Shard: core.Shard{Queue: "secrets"}, ID: "hidden-id", Began: core.InstantOf(epoch)}},
	}})
	h.announce(ports.Node{Owner: "other", Name: "elsewhere", Queues: []string{"secrets"}})

	page := h.get("/server?node=owner")
	says(t, page, "blue works", "Lanes busy 1 of 16", "seen")
	saysNot(t, page, "secrets", "hidden-id", `href="nodes"`, `value="drain"`)
	for _, target := range []string{"/busy", "/busy?q=orders"} {
		says(t, h.get(target), "blue alive: 1 of 16 lanes busy, 0 running, 0 buffered")
	}
	if w := answerOf(h.board, request(http.MethodGet, "/server?node=other", nil)); w.Code != http.StatusNotFound {
		t.Errorf("a server of other queues: status %d", w.Code)
	}

	h.advance(time.Hour)
	h.board.looker.acted()
	page = h.get("/")
	says(t, page, "No server runs this queue: 1 job waits, 1 of them left by blue, which stopped responding")
	saysNot(t, page, "secrets", "elsewhere", "2 queues", `href="nodes"`, `href="store"`)
}

// Names of servers are shown as text.
func TestHostileNamesOfServers(t *testing.T) {
	h := newHouse(t, Options{})
	name := `<script>alert(1)</script>` + "\u202egnp" + strings.Repeat("x", 128)
	h.announce(ports.Node{Name: name, Host: `"><img src=x>`, Version: `<b>v1</b>` + "\u202e", Lanes: 2, Queues: []string{"orders"}})
	h.push("orders", "a", 0, "p")
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	for range 2 {
		for _, target := range []string{"/server?node=owner", "/", "/nodes", "/queue?q=orders", "/busy", "/shards?q=orders"} {
			page := h.get(target)
			for _, raw := range []string{"<script>alert", "<img", "<b>v1", "\u202e"} {
				if strings.Contains(page, raw) {
					t.Errorf("%s has %q", target, raw)
				}
			}
		}
		h.advance(time.Hour)
		h.board.looker.acted()
	}
}
