package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports"
)

func TestOverviewOfNothing(t *testing.T) {
	h := newHouse(t, Options{})
	if err := h.store.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	says(t, h.get("/"), "Nothing is wrong.", "Oldest due job 0 s no job is late", "No queues yet.")
}

func TestOverviewSaysWhatIsWrongWithItsNextStep(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders", "mails"}, Version: "v1"})
	h.declare("mails", 1)
	h.declare("reports", 2)
	h.declare("bills", 1)
	h.push("reports", "r", 0, "p")
	h.push("bills", "b", 0, "p")
	if err := h.store.Pause(t.Context(), "bills"); err != nil {
		t.Fatal(err)
	}
	h.ended(core.Buried, "boom", numbered("dead", 3)...)
	h.advance(12 * time.Second)
	h.store.checks = []ports.Check{
		{Name: "policy", Status: ports.CheckFail, Value: "allkeys-lru", Advice: "Set noeviction."},
	}
	page := h.get("/")
	says(t, page,
		"store policy: allkeys-lru. Set noeviction. for at least 0 s store",
		"reports No server runs this queue: 1 job waits for 12 s servers",
		"orders 3 died within the last hour, the newest 12 s ago for 12 s morgue",
		"bills Paused; 1 job waits for at least 0 s Resume bills",
		"reports ▨ not served 12 s 1 0 0 0 0 – 0 done",
		"Oldest due job 12 s reports, not served Waiting 2 1 of them paused",
		"Dead 3 +3 in 1 h, orders",
	)
	for _, link := range []string{`href="morgue?q=orders"`, `href="nodes"`, `href="store"`, `href="queue?q=bills"`} {
		if !strings.Contains(page, link) {
			t.Errorf("no %s", link)
		}
	}
}

// A user who may not resume a queue has a link to it instead.
func TestOnlyWhoMayResumeHasAButton(t *testing.T) {
	h := newHouse(t, readOnly)
	h.push("orders", "b", 0, "p")
	if err := h.store.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	page := h.get("/")
	saysNot(t, page, `value="resume"`)
	says(t, page, "orders Paused; 1 job waits for at least 0 s queue of orders")
}

func TestOverviewOfAStoreInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}})
		h.push("orders", "a", 0, "p")
		h.store.statsFail = errors.New("dial tcp 10.0.0.1: refused")
		w := answerOf(h.board, request(http.MethodGet, "/", nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d of a store that has never answered", w.Code)
		}
		says(t, w.Body.String(), "The store does not answer", "refused")

		h.store.statsFail = nil
		saysNot(t, h.get("/"), "does not answer")
		h.store.statsFail = errors.New("dial tcp 10.0.0.1: refused")
		says(t, h.get("/"), "The store is silent No answer for", "dial tcp 10.0.0.1: refused", "orders", "Waiting 1")

		h.store.statsFail, h.store.away = nil, []core.Shard{{Queue: "orders", Index: 2}}
		says(t, h.get("/"), "orders Shard 2 can't be reached; the figures don't include it")
		says(t, h.get("/queue?q=orders"), "1 of 3 shards can't be reached", "unreachable 1")
		says(t, h.get("/shards?q=orders"), "Unreachable shards, which are missing here: 1.", "1 to 2 of 2")

		saysNot(t, h.get("/queue?q=orders"), "history can't be read")
		h.store.away = []core.Shard{{Queue: "orders", Index: 0}}
		h.board.looker.last = nil
		says(t, h.get("/"), "orders Shard 0 can't be reached; the figures don't include it")
		page := h.get("/queue?q=orders")
		says(t, page, "The history can't be read: shard 0 holds all or part of it and can't be reached",
			"Done – &nbsp; Failing –")
		if !strings.Contains(page, `<div data-region="charts"><p class="late">`) { // an open page replaces its regions
			t.Error("that the history can't be read is in no region")
		}
		h.board.looker.last = nil

		h.store.away, h.store.nodesFail = nil, errors.New("no list")
		saysNot(t, h.get("/"), "no server runs this queue")
		h.store.nodesFail, h.store.historyFail, h.store.checksFail =
			nil, errors.New("no minutes"), errors.New("no checks")
		h.advance(time.Minute)
		h.board.looker.last = nil
		says(t, h.get("/"), "orders")
		says(t, h.get("/queue?q=orders"), "The history can't be read: no minutes", "Done – &nbsp; Failing –")
	})
}

func TestOverviewShowsRatesAndHours(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Version: "v1", Owner: "o1"})
	h.advance(40 * time.Minute)
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Version: "v2", Owner: "o2"})
	h.record("orders", 10*time.Minute, 600, 30)
	page := h.get("/")
	says(t, page, "1.2 4.8 %", "Done 1.2 /s", "Failing 4.8 %", "600 done, 30 failed within an hour", "first server of v2", "p50", "As a table")
}

// A queue that lags because of its rate has that cause in its line.
func TestALagByARateNamesTheRate(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, "p")
	h.advance(2 * time.Minute)
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", Rate: "1/1h"}},
	}})
	says(t, h.get("/"), "orders 2 min behind, 1 waiting")
	saysNot(t, h.get("/"), "its rate")

	_, err := h.store.Take(t.Context(), ports.TakeRequest{Queue: "orders", Takes: []ports.Take{
		{Rate: core.Rate{Count: 1, Per: time.Hour}, Want: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.board.looker.last = nil
	says(t, h.get("/"), "orders 2 min behind, 1 waiting: its rate of 1/1h0m0s allows no more")
	says(t, h.get("/queue?q=orders"), "its rate of 1/1h0m0s allows no more")

	if err := h.store.Stop(t.Context(), ports.StopRequest{Queue: "orders", For: 2 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	h.board.looker.last = nil
	says(t, h.get("/"), "orders 2 min behind, 1 waiting: its rate is stopped for 2 h more")
}

// A total is of the rates that are known.
func TestTheTotalLeavesOutUnknownRates(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 3)
	h.record("orders", 10*time.Minute, 600, 30)
	h.store.away = []core.Shard{{Queue: "mails"}} // which has the history
	says(t, h.get("/"), "Done 1.2 /s", "Failing 4.8 %")
}

// record counts ended jobs in each of the last minutes.
func (h *house) record(queue string, last time.Duration, done, failed uint64) {
	h.t.Helper()
	r := ports.RecordRequest{Owner: "o"}
	minutes := int(last / time.Minute)
	for at := range minutes {
		var s core.Stats
		s.Processed, s.Failed = done/uint64(minutes), failed/uint64(minutes)
		s.ObserveWait(40 * time.Millisecond)
		minute := h.now.Truncate(time.Minute).Add(-time.Duration(at) * time.Minute)
		r.Records = append(r.Records, ports.Record{Queue: queue, Minute: core.InstantOf(minute), Stats: s})
	}
	if err := h.store.Record(h.t.Context(), r); err != nil {
		h.t.Fatal(err)
	}
}

// The page of a queue shows its history by day. It says so if that can't be read, and shows no empty
// month then.
func TestAQueueShowsItsDays(t *testing.T) {
	h := newHouse(t, Options{})
	says(t, h.get("/queue?q=orders&span=30d"), "Nothing has run in 30 days")
	for range 20 {
		h.advance(24 * time.Hour)
		h.record("orders", 10*time.Minute, 600, 30)
	}
	page := h.get("/queue?q=orders&span=30d")
	says(t, page, "1 h 24 h 30 days", "a day, in 30 days", "600 done, 30 failed a day", "done in 1 d", "Day, UTC")
	if today := h.now.UTC().Format("2 Jan"); strings.Count(page, "<td>"+today+"</td>") != 2 {
		t.Errorf("the tables have no row of %s", today)
	}
	saysNot(t, h.get("/queue?q=orders"), "a day", "30 failed a day")
	saysNot(t, h.get("/queue?q=orders&span=1y"), "a day, in")

	failed := false
	h.store.onHistory = func() {
		if failed {
			h.store.historyFail = errors.New("no days")
		}
	}
	h.get("/queue?q=orders") // the snapshot has the minutes
	failed = true
	says(t, h.get("/queue?q=orders&span=30d"), "The history can't be read: no days")
	saysNot(t, h.get("/queue?q=orders&span=30d"), "Nothing has run")
	h.store.onHistory, h.store.historyFail = nil, nil

	h.store.away = []core.Shard{{Queue: "orders", Index: 0}}
	page = h.get("/queue?q=orders&span=30d")
	says(t, page, "The history can't be read: shard 0 holds all or part of it and can't be reached")
	saysNot(t, page, "Nothing has run")
}

func TestOverviewSortsFiltersAndFolds(t *testing.T) {
	h := newHouse(t, Options{})
	for n := range 40 {
		h.declare(fmt.Sprintf("quiet%02d", n), 1)
	}
	h.push("orders", "a", time.Hour, "p")
	page := h.get("/")
	says(t, page, "40 queues with nothing waiting and nothing wrong")
	if strings.Index(page, ">orders</a>") > strings.Index(page, `<details class="foot">`) {
		t.Error("the queue with a job is folded")
	}
	page = h.get("/?find=QUIET1")
	says(t, page, "quiet10", "quiet19")
	saysNot(t, page, `>quiet20</a>`, `>orders</a>`)
	says(t, h.get("/?find=nix"), "No queue name contains “nix”.")
	h.push("quiet07", "a", 0, "p", "q")
	h.push("quiet07", "b", 0, "p", "q")
	h.advance(time.Second)
	first := func(page string) string {
		_, body, _ := strings.Cut(page, "<tbody>")
		_, row, _ := strings.Cut(body, `data-k="`)
		name, _, _ := strings.Cut(row, `"`)
		return name
	}
	for sort, want := range map[string]string{
		"":         "quiet07",
		"waiting":  "quiet07",
		"name":     "orders",
		"nonsense": "quiet07",
	} {
		if got := first(h.get("/?sort=" + sort)); got != want {
			t.Errorf("sorted by %q the first is %s, want %s", sort, got, want)
		}
	}
}

// Of very many queues the worst are shown, and the page stays small.
func TestOverviewOfVeryManyQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		var names []string
		for n := range 500 {
			name := fmt.Sprintf("q%03d", n)
			names = append(names, name)
			h.declare(name, 1)
			if n%2 == 0 {
				h.push(name, "a", 0, "p")
			}
		}
		h.advance(time.Second)
		says(t, h.get("/"), "No server runs 250 queues (q000, q002, q004 and 247 more): 250 jobs wait")
		h.advance(time.Minute)
		h.announce(ports.Node{Name: "blue", Queues: names})
		page := h.get("/")
		says(t, page, "38 more", "and 450 more", "These are the first 80. all 250",
			"251 queues with nothing waiting and nothing wrong")
		if rows := strings.Count(page, `<tr data-k="q`); rows != 80 || len(page) > 170_000 {
			t.Errorf("%d rows in %d bytes", rows, len(page))
		}
		if rows := strings.Count(h.get("/?all=1"), `<tr data-k="q`); rows != 250 {
			t.Errorf("%d rows of all", rows)
		}
		says(t, h.get("/?find=q49"), "q499")
	})
}

func TestOneLookForAllWhoLook(t *testing.T) {
	h := newHouse(t, Options{})
	for range 20 {
		if w := answerOf(h.board, request(http.MethodGet, "/", nil)); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
		answerOf(h.board, request(http.MethodGet, "/queue?q=orders", nil))
	}
	if h.store.looks != 1 {
		t.Errorf("40 pages have looked %d times within a moment", h.store.looks)
	}
	h.board.looker.clock = func() time.Time { return epoch.Add(maxRest) }
	answerOf(h.board, request(http.MethodGet, "/", nil))
	if h.store.looks != 2 {
		t.Errorf("after the longest rest there were %d looks", h.store.looks)
	}
	h.do("op", "pause", "q", "orders")
	if h.store.looks != 3 {
		t.Errorf("after an action there were %d looks", h.store.looks)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	h.board.looker.acted()
	if s, err := h.board.looker.look(gone); err != nil || s.failed != nil || h.store.looks != 4 {
		t.Errorf("who left while it looked leaves the others %v, %v after %d looks", s.failed, err, h.store.looks)
	}
}

// After a look the store is left alone for 99 times as long as that took, within bounds.
func TestTheStoreRestsAfterALook(t *testing.T) {
	for took, rest := range map[time.Duration]time.Duration{
		0:                      minRest,
		100 * time.Millisecond: 9900 * time.Millisecond,
		time.Second:            maxRest,
	} {
		h := newHouse(t, Options{})
		now := time.Now()
		h.board.looker.clock = func() time.Time { return now }
		began := now
		h.store.onHistory = func() { now = began.Add(took) }
		looks := func() int {
			if _, err := h.board.looker.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			return h.store.looks
		}
		looks()
		h.store.onHistory = nil
		now = now.Add(rest - 1)
		if n := looks(); n != 1 {
			t.Errorf("%d looks within %v after one that took %v", n, rest, took)
		}
		now = now.Add(1)
		if n := looks(); n != 2 {
			t.Errorf("%d looks %v after one that took %v", n, rest, took)
		}
	}
}

// A page that scripts ask for again is not sent again while nothing but the time has changed.
func TestAPageThatHasNotChangedIsNotSentAgain(t *testing.T) {
	for _, path := range []string{
		"/", "/queue?q=orders", "/shards?q=orders", "/jobs?q=orders", "/busy", "/morgue?q=orders", "/nodes", "/store",
	} {
		t.Run(path, func(t *testing.T) {
			h := newHouse(t, Options{})
			h.board.looker.clock = func() time.Time {
				h.mu.Lock()
				defer h.mu.Unlock()
				return h.now
			}
			h.push("orders", "a", time.Hour, "p")
			again := request(http.MethodGet, path, nil)
			again.Header.Set("If-None-Match", answerOf(h.board, again).Header().Get("ETag"))
			h.advance(maxRest)
			if w := answerOf(h.board, again); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
				t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
			}
			h.push("orders", "b", -time.Second, "p")
			h.end("orders", core.Buried, "broken")
			h.push("orders", "c", time.Hour, "p")
			h.announce(ports.Node{Owner: "n1", Name: "n1", Queues: []string{"orders"}})
			h.store.checks = []ports.Check{{Name: "answers", Status: ports.CheckOK}}
			h.advance(maxRest)
			if w := answerOf(h.board, again); w.Code != http.StatusOK {
				t.Errorf("status %d after it has changed", w.Code)
			}
		})
	}
}

// Where history is slow a page does not wait for that of all queues: it comes with the looks that
// follow.
func TestSlowHistoryComesBitByBit(t *testing.T) {
	h := newHouse(t, Options{})
	for n := range 19 {
		h.declare(fmt.Sprintf("q%02d", n), 1)
	}
	now := time.Now()
	h.board.looker.clock = func() time.Time { return now }
	h.store.onHistory = func() { now = now.Add(30 * time.Millisecond) }
	h.get("/")
	first := len(h.board.looker.last.details)
	if first == 0 || first == 20 {
		t.Errorf("the first page has the history of %d of 20 queues", first)
	}
	for looks := 0; len(h.board.looker.last.details) < 20; looks++ {
		if looks > 20 {
			t.Fatalf("after %d looks there is the history of %d queues", looks, len(h.board.looker.last.details))
		}
		h.get("/")
	}
}

// A queue that waits for one job names it, and leads to its row under Busy; no line leads back to
// its own page.
func TestTheNextStepIsTheJobThatIsTheCause(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "export 1", 0, "p")
	var claims []core.Claim
	shard := -1
	for len(claims) == 0 {
		shard++
		claims = h.turn("orders", shard, 1)
	}
	h.push("orders", "next", 0, "p")
	h.push("orders", "after", 0, "p")
	began := core.InstantOf(h.now)
	h.advance(9 * time.Minute)
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", MaxRunning: 1, Busy: 1}},
		Longest: []ports.RunningJob{{
			Shard: core.Shard{Queue: "orders", Index: shard}, ID: "export 1", Receipt: claims[0].Receipt, Began: began,
		}},
	}})
	page := h.get("/")
	says(t, page, "orders export 1 has run for 9 min and is the only job that may run (MaxRunning 1); 2 jobs wait behind it")
	link := regexp.MustCompile(`href="(busy\?q=orders)#(job-\w+)"`).FindStringSubmatch(page)
	if link == nil {
		t.Fatalf("no link to the job: %s", page)
	}
	if busy := h.get("/" + link[1]); !strings.Contains(busy, `<tr id="`+link[2]+`"`) {
		t.Errorf("no row %s in %s", link[2], busy)
	}
	for _, l := range []wrong.Line{
		{Kind: wrong.NotMoving, Queue: "q"}, {Kind: wrong.Late, Queue: "q"}, {Kind: wrong.Paused, Queue: "q"},
		{Kind: wrong.Failing, Queue: "q"},
	} {
		if got := wrongLineOf(&l, h.now, "queue"); strings.HasPrefix(got.Href, "queue") || got.Href == "" {
			t.Errorf("%v on the page of its queue leads to %q", l.Kind, got.Href)
		}
		if got := wrongLineOf(&l, h.now, "overview"); strings.HasPrefix(got.Href, "./") || got.Href == "" {
			t.Errorf("%v on the overview leads to %q", l.Kind, got.Href)
		}
	}

	hidden := newHouse(t, Options{API: httpapi.Options{RedactID: func(string, string) string { return "hidden" }}})
	hidden.push("orders", "next", 0, "p")
	hidden.advance(9 * time.Minute)
	hidden.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues:  []ports.QueueStatus{{Queue: "orders", MaxRunning: 1, Busy: 1}},
		Longest: []ports.RunningJob{{Shard: core.Shard{Queue: "orders", Index: shard}, ID: "secret", Began: began}},
	}})
	page = hidden.get("/")
	says(t, page, "hidden has run for 9 min")
	saysNot(t, page, "secret")
}

// The jobs of a paused queue are meant to wait, so that its lag is not that of the store.
func TestThePausedQueueIsLeftOutOfTheLag(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}})
	h.declare("bills", 1)
	h.push("bills", "b", 0, "p")
	if err := h.store.Pause(t.Context(), "bills"); err != nil {
		t.Fatal(err)
	}
	h.advance(40 * time.Second)
	h.push("orders", "a", 0, "p")
	h.advance(10 * time.Second)
	says(t, h.get("/"), "Oldest due job 10 s orders, no owner Waiting 2 1 of them paused", "bills ‖ paused 50 s")
}
