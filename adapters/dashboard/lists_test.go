package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// keys are the rows of a region, in order.
func keys(page, region string) (list []string) {
	_, of, _ := strings.Cut(page, `data-region="`+region+`"`)
	of, _, _ = strings.Cut(of, "</table>")
	for _, k := range regexp.MustCompile(`data-k="([^"]*)"`).FindAllStringSubmatch(of, -1) {
		list = append(list, k[1])
	}
	return list
}

// link returns where a link with a text leads to.
func link(t testing.TB, page, text string) string {
	t.Helper()
	found := regexp.MustCompile(`<a href="([^"]*)"[^>]*>` + text + `</a>`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no link %s in %s", text, words(page))
	}
	return "/" + html.UnescapeString(found[1])
}

func TestListsGoOnByCursors(t *testing.T) {
	h := newHouse(t, Options{})
	for n, id := range numbered("j", 120) {
		h.push("orders", id, time.Duration(n+1)*time.Minute, "p")
	}
	page := h.get("/jobs?q=orders&list=scheduled")
	if got := keys(page, "rows"); len(got) != 50 || got[0] != "j00000" {
		t.Fatalf("the first page is %v", got)
	}
	page = h.get(link(t, page, "next"))
	page = h.get(link(t, page, "next"))
	if got := keys(page, "rows"); len(got) != 20 || got[19] != "j00119" || strings.Contains(page, `rel="next"`) {
		t.Errorf("the last page is %v", got)
	}
	if got := keys(h.get(link(t, page, "first")), "rows"); got[0] != "j00000" {
		t.Errorf("the first page is %v", got)
	}
	for target, want := range map[string]string{
		"list=waiting&desc=1":                      "j00119",
		"sort=id&from=j00100":                      "j00100",
		"sort=id&prefix=j0009":                     "j00090",
		"from=2030-01-02T04:04:00Z":                "j00059",
		"list=fresh&sort=id&desc=1":                "j00119",
		"list=scheduled&desc=1":                    "j00119",
		"list=scheduled&from=2030-01-02T04:04:00Z": "j00059",
	} {
		if got := keys(h.get("/jobs?q=orders&"+target), "rows"); len(got) == 0 || got[0] != want {
			t.Errorf("%s begins with %v, want %s", target, got, want)
		}
	}
	shard := core.ShardOf("j00007", houseShards)
	for _, id := range keys(h.get(fmt.Sprintf("/jobs?q=orders&shard=%d", shard)), "rows") {
		if core.ShardOf(id, houseShards) != shard {
			t.Errorf("%s is not of shard %d", id, shard)
		}
	}
	says(t, h.get("/jobs?q=orders&list=retries"), "No jobs match.", "0 of 0")
	for _, target := range []string{
		"/jobs?q=orders&from=nix", "/jobs?q=orders&after=nix", "/jobs?q=orders&shard=99",
		"/jobs?q=orders&list=retries&sort=count&from=x",
	} {
		if w := answerOf(h.board, request(http.MethodGet, target, nil)); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
	h.advance(30*time.Minute + time.Second)
	if got := keys(h.get("/jobs?q=orders&list=scheduled"), "rows"); got[0] != "j00030" {
		t.Errorf("what is not due begins with %s", got[0])
	}
}

func TestAnIDInSeveralQueues(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	h.push("orders", "a", time.Hour, "p")
	if w := answerOf(h.board, request(
		http.MethodGet, "/search?for=a", nil,
	)); w.Header().Get("Location") != "id?id=a&q=orders" {
		t.Errorf("status %d to %q", w.Code, w.Header().Get("Location"))
	}
	h.push("mails", "a", time.Hour, "p")
	says(t, h.get("/search?for=a"), "The id a is in 2 queues", "mails mails/0 queued")
	says(t, h.get("/search?for=b"), "b not found: no queue has it in its name, and as an id it is not queued, running or dead, and without a schedule")
	says(t, h.get("/id?q=orders&id=a"), "also in mails (queued)")
	says(t, h.get("/id?q=orders&id=zz"), "Nothing is queued, claimed or dead for this id")
}

// A queue that was forgotten since the last look is no problem of a search.
func TestASearchAfterAQueueIsForgotten(t *testing.T) {
	some := false
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if some && a.Queue == "" {
			return errors.New("not all")
		}
		return nil
	}}})
	h.declare("mails", 1)
	h.push("orders", "x", 0, "p")
	h.get("/")
	if err := h.store.Forget(t.Context(), "mails"); err != nil {
		t.Fatal(err)
	}
	for _, some = range []bool{false, true} {
		w := answerOf(h.board, request(http.MethodGet, "/search?for=x", nil))
		if to := w.Header().Get("Location"); to != "id?id=x&q=orders" {
			t.Errorf("only some queues %v: it leads to %q: %d %s", some, to, w.Code, words(w.Body.String()))
		}
	}
}

// An id that only has schedules is found.
func TestAnIDWithSchedulesIsFound(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	h.schedule("mails", "tenant-7", "nightly", nil)
	h.schedule("mails", "tenant-7", "weekly", nil)
	h.board.looker.acted()
	w := answerOf(h.board, request(http.MethodGet, "/search?for=tenant-7", nil))
	if to := w.Header().Get("Location"); to != "id?id=tenant-7&q=mails" {
		t.Errorf("status %d to %q: %s", w.Code, to, words(w.Body.String()))
	}
	says(t, h.get("/id?q=mails&id=tenant-7"), "Its schedule nightly pushes at 2 Jan 22:00:00 UTC", "nightly tenant-7 ✓ fine")

	h.push("orders", "tenant-7", time.Hour, "p")
	says(t, h.get("/search?for=tenant-7"), "The id tenant-7 is in 2 queues", "orders orders/", "queued",
		"mails mails/0 2 schedules")
	h.push("mails", "tenant-7", time.Hour, "p")
	says(t, h.get("/search?for=tenant-7"), "mails mails/0 queued, 2 schedules")
}

// A search states which schedules it could not read.
func TestASearchThatDoesNotReachSchedules(t *testing.T) {
	h := newHouse(t, Options{})
	h.store.schedulesAway = []core.Shard{{Queue: "orders", Index: 2}}
	says(t, h.get("/search?for=b"), "b not found", "Unreachable shards, which are missing here: 1. orders/2")

	h.board = h.over(func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if call.Method == "Schedules" {
			return errors.New("refused by the test")
		}
		return next(ctx)
	}, Options{})
	says(t, h.get("/search?for=b"), "b not found", "Schedules of the id can't be read: orders:", "refused by the test")
	saysNot(t, h.get("/search?for=b"), "without a schedule")
	h.push("orders", "b", time.Hour, "p")
	says(t, h.get("/search?for=b"), "The id b is in 1 queue", "orders orders/", "Schedules of the id can't be read: orders:")
}

func TestVerdictsAndTheirFacts(t *testing.T) {
	h := newHouse(t, Options{})
	says(t, h.get("/id?q=orders&id=a"), "served no: no server runs this queue")
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Lanes: 2, Status: ports.NodeStatus{
		Busy: 2, Queues: []ports.QueueStatus{{Queue: "orders", MaxRetries: 25, MaxRunning: 4, MaxLanes: 3, Busy: 2}},
	}})
	h.ended(core.Failed, "boom\nstack", "a")
	page := h.get("/id?q=orders&id=a")
	says(t, page, "Runs again in 1 h, after failure 1 of 25 ▲ backoff", "served yes: by blue", "held by blue",
		"lane no: 2 of 2 lanes there are busy", "due no: in 1 h",
		"limit yes: 2 of 4 running on all servers (MaxRunning)", "lanes of the queue yes: 2 of 3 there are busy",
		"failures 1 of 25", "Failure 1 boom …", "boom stack", "queue yes: active")
	says(t, h.do("op", "pause", "q", "orders"), "paused")
	says(t, h.get("/id?q=orders&id=a"), "The queue is paused ‖ paused Resume it.", "queue no: paused")
	h.store.nodesFail = errors.New("away")
	says(t, h.get("/id?q=orders&id=a"), "served not known: the list of servers can't be read now")
}

// The page of a queue with a rate has the rate, the next start, and the end of a stop.
func TestTheRateOfAQueueIsOnItsPage(t *testing.T) {
	h := newHouse(t, Options{})
	saysNot(t, h.get("/queue?q=orders"), "next start")
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Lanes: 2, Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", Rate: "6/1m0s"}},
	}})
	page := h.get("/queue?q=orders")
	says(t, page, "rate 6/1m0s", "next start")
	saysNot(t, page, "rate stopped until")

	if err := h.store.Stop(t.Context(), ports.StopRequest{Queue: "orders", For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	h.push("orders", "a", 0, "p")
	says(t, h.get("/queue?q=orders"), "next start in 1 h", "rate stopped until ▲ in 1 h")
}

// Servers announce their running jobs at moments of their own, and a lower bound stops no running
// job. So more may run than the shown bound.
func TestMoreRunsThanTheBound(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", time.Hour, "p")
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", MaxRunning: 4, Busy: 9}},
	}})
	says(t, h.get("/id?q=orders&id=a"),
		"limit no: 9 running on all servers (MaxRunning), more than the limit of 4: "+
			"some began under a higher limit, or the servers' reports are of different moments")
}

func TestADeadIDBeginsWithItsError(t *testing.T) {
	h := newHouse(t, Options{})
	h.ended(core.Buried, "boom\nat line 3", "a")
	page := h.get("/id?q=orders&id=a")
	says(t, page, "Last failure before the morgue boom … boom at line 3", "Dead letter last failed 0 s ago on worker-c changed 0 s ago")
	saysNot(t, page, "<h2>Job", "<h2>Running", "nothing")
	h.ended(core.Buried, "in one line", "b")
	if n := strings.Count(h.get("/id?q=orders&id=b"), "in one line"); n != 1 {
		t.Errorf("an error of one line is shown %d times", n)
	}
}

func TestARecordThatCannotBeReadIsSaidPlainly(t *testing.T) {
	got, _, _ := verdictOf(&service.Verdict{
		Reason:   inspect.Unreadable,
		Sentence: inspect.Sentence{{Text: "the record of this id can't be read (queued)"}},
	})
	if got != "The record of this id can't be read (queued)" {
		t.Errorf("the verdict is %q", got)
	}
}

func TestWhatRunsIsOfServersThatSaySo(t *testing.T) {
	for name, redact := range map[string]func(queue, id string) string{
		"":        nil,
		"hidden ": func(_, id string) string { return "hidden " + id },
	} {
		t.Run(name, func(t *testing.T) { showsWhatRuns(t, httpapi.Options{RedactID: redact}, name+"slow") })
	}
}

// showsWhatRuns checks that a job which a server announces as running is shown so, by this name.
func showsWhatRuns(t *testing.T, o httpapi.Options, slow string) {
	t.Helper()
	h := newHouse(t, Options{API: o})
	h.record("orders", 10*time.Minute, 100, 0)
	h.push("orders", "fast", 0, "p")
	h.push("orders", "slow", 0, "p")
	var longest []ports.RunningJob
	for index := range houseShards {
		for _, claim := range h.turn("orders", index, 9) {
			if claim.ID == "slow" {
				longest = append(longest, ports.RunningJob{
					Shard:   core.Shard{Queue: "orders", Index: index},
					ID:      claim.ID,
					Receipt: claim.Receipt,
					Began:   core.InstantOf(epoch),
				})
			}
		}
	}
	h.advance(90 * time.Second)
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Lanes: 8, Status: ports.NodeStatus{
		Busy: 1, Running: 1, Longest: longest,
	}})
	h.announce(ports.Node{Name: "green", Owner: "o2", Queues: []string{"mails"}, Lanes: 4})
	page := h.get("/busy")
	says(t, page, "blue alive: 1 of 8 lanes busy, 1 running", "1 min 30 s ● long orders "+slow,
		"1 buffered, or just started", "green alive", "No running jobs.")
	saysNot(t, h.get("/busy?q=orders"), "green")
	if w := answerOf(h.board, request(http.MethodGet, "/busy?q=nix", nil)); w.Code != http.StatusNotFound {
		t.Errorf("an unknown queue: status %d", w.Code)
	}
}

func TestMorgueByGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		bury := func(group, text string, ids ...string) {
			for _, id := range ids {
				h.push("orders", id, 0, "p")
			}
			policy := core.RetryPolicy{}
			for index := range houseShards {
				claims := h.turn("orders", index, 50)
				var settle []core.Settlement
				for at := range claims {
					s := policy.Settlement(&claims[at], &core.Outcome{Kind: core.Buried, Error: text, Group: group}, 0)
					settle = append(settle, s)
				}
				h.turn("orders", index, 0, settle...)
			}
		}
		bury("old error #", "old error 1", numbered("a", 4)...)
		h.advance(2 * time.Hour)
		h.turns = map[core.Shard]*ports.TurnRequest{}
		bury("new error #", "new error 7", numbered("b", 3)...)
		h.advance(time.Second)
		page := h.get("/morgue?q=orders")
		says(t, page, "old error # 0 4 4", "new error # 3 3 3", "all 3 7 7")
		if got := keys(page, "letters"); len(got) != 7 || got[0][0] != 'b' {
			t.Errorf("the newest are not first: %v", got)
		}
		page = h.get(link(t, page, "old error #"))
		if got := keys(page, "letters"); len(got) != 4 || got[0][0] != 'a' {
			t.Errorf("the group has %v", got)
		}
		sheet := h.get(link(t, page, "purge …"))
		says(t, sheet, "Purge dead letters of orders in the group “old error #”", "4 match of 7.")
		h.advance(time.Second)
		page = h.do("op", "purge", "q", "orders", "bulk", "1", "group", field(t, sheet, "group"),
			"before", field(t, sheet, "before"), "confirm", "4")
		says(t, page, "4 removed permanently")
		if n := h.stats().Dead; n != 3 {
			t.Errorf("%d are left", n)
		}
		page = h.get("/morgue?q=orders&sort=id&prefix=b00001")
		if got := keys(page, "letters"); len(got) != 1 {
			t.Errorf("the prefix has %v", got)
		}
		says(t, h.get(link(t, page, "revive …")), "Revive dead letters of orders whose id begins with “b00001”",
			"1 match of 3")
		says(t, h.do("op", "revive", "q", "orders", "id", "b00000", "id", "b00002", "back", "morgue"), "2 queued again")
	})
}

// A sheet shows how many dead letters are left alone since they were imported with a time in the
// future.
func TestASheetSaysWhatIsLater(t *testing.T) {
	h := newHouse(t, Options{})
	h.ended(core.Buried, "boom", "now")
	h.advance(time.Second)
	target := "/sheet?q=orders&op=revive"
	saysNot(t, h.get(target), "time to come")
	_, err := h.store.Import(t.Context(), ports.ImportRequest{
		Shard:      core.Shard{Queue: "orders", Index: core.ShardOf("later", houseShards)},
		Shards:     houseShards,
		Generation: 1,
		DeadLetters: []core.DeadLetter{
			{
				ID:        "later",
				ChangedAt: core.MaxInstant,
				Failures:  core.Failures{{Text: "e"}},
				Group:     "e",
				Payloads:  []core.Payload{{Data: []byte("p")}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	says(t, h.get(target), "1 match of 2.",
		"are not affected, among them 1 or more that changed later or were imported with a later time. "+
			"Actions on marked rows include those.")
}

// A user who looks at the morgue for long reads its newest thousand now and then, not each time.
func TestTheNewestDeadLettersAreCountedNowAndThen(t *testing.T) {
	h := newHouse(t, Options{})
	now := time.Now()
	h.board.looker.clock = func() time.Time { return now }
	h.ended(core.Buried, "boom", "old")
	h.advance(25 * time.Hour)
	h.turns = map[core.Shard]*ports.TurnRequest{}
	h.ended(core.Buried, "boom", numbered("a", pageRows)...)
	lists := func(after time.Duration) int {
		t.Helper()
		now = now.Add(after)
		h.board.looker.next = now.Add(time.Hour) // the snapshot is another matter
		before := h.store.lists
		if w := answerOf(h.board, request(http.MethodGet, "/morgue?q=orders", nil)); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
		return h.store.lists - before
	}
	lists(0) // takes the snapshot
	once := lists(0)
	if again := lists(detailRest - 1); again != once {
		t.Errorf("%d lists for a page, and %d for the next", once, again)
	}
	if later := lists(1); later <= once {
		t.Errorf("%d lists for a page after the rest, and %d within it", later, once)
	}
	h.board.looker.acted()
	h.board.looker.stale = false
	if acted := lists(0); acted <= once {
		t.Errorf("%d lists for a page after an action, and %d before", acted, once)
	}
}

func TestUnreachableShardsAreMissingFromLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.store.checks = []ports.Check{
			{Name: "clock", Status: ports.CheckOK, Value: "0 ms"},
			{Name: "memory", Server: "10.0.0.1:6379", Status: ports.CheckFail, Value: "full", Advice: "Give it more."},
			{Name: "slow", Status: ports.CheckUnknown, Value: "no right"},
		}
		h.store.away = []core.Shard{{Queue: "orders", Index: 1}}
		page := h.get("/store")
		says(t, page, "Unreachable shards, which are missing here: 1. orders/1",
			"● fail memory 10.0.0.1:6379 full Give it more.", "? unknown slow", "✓ ok clock")
		if got := keys(page, "store"); got[0] != "memory 10.0.0.1:6379" {
			t.Errorf("the checks are %v", got)
		}
		h.store.checksFail = errors.New("no answer")
		h.board.looker.last = nil
		says(t, h.get("/store"), "The store can't be checked: no answer")
	})
}

// A server in which pages are looked at stops at once: nothing is a stream.
func TestShutdownWaitsForNobodyWhoLooks(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(*http.Request, httpapi.Action) error { return nil }}})
	server := httptest.NewServer(h.board)
	var looking, answered sync.WaitGroup
	var ending atomic.Bool
	for range 10 {
		answered.Add(1)
		looking.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			seen := sync.OnceFunc(answered.Done)
			defer seen()
			for {
				answer, err := client.Get(server.URL + "/")
				if err != nil {
					if !ending.Load() {
						t.Error(err)
					}
					return
				}
				_ = answer.Body.Close()
				seen()
			}
		})
	}
	answered.Wait()
	ending.Store(true)
	ctx, end := context.WithTimeout(t.Context(), 5*time.Minute) // a stream would never end
	defer end()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	server.Close()
	looking.Wait()
}

// The page of an id has the next run and the last five failures, newest first, of a job and of a dead
// letter.
func TestThePastOfAnID(t *testing.T) {
	h := newHouse(t, Options{})
	h.ended(core.Failed, "503 at 1", "a")
	for n := 2; n <= 7; n++ {
		h.advance(2 * time.Hour)
		h.end("orders", core.Failed, fmt.Sprint("503 at ", n))
	}
	page := h.get("/id?q=orders&id=a")
	says(t, page, "Next run", "Failure 7 503 at 7 worker-c", "Failure 3 503 at 3")
	saysNot(t, page, "503 at 2", "Failure 2")
	if strings.Index(page, "503 at 7") > strings.Index(page, "503 at 6") {
		t.Error("the newest failure is not the first")
	}

	h.advance(2 * time.Hour)
	claims := h.turn("orders", core.ShardOf("a", houseShards), 1)
	page = h.get("/id?q=orders&id=a")
	says(t, page, "Failure 7 503 at 7 worker-c", "Failure 3 503 at 3")
	saysNot(t, page, "Next run", "No failure is known")
	untouched := core.RetryPolicy{}.Settlement(&claims[0], &core.Outcome{Kind: core.Untouched}, 0)
	h.turn("orders", core.ShardOf("a", houseShards), 0, untouched)
	h.end("orders", core.Buried, "gave up")
	page = h.get("/id?q=orders&id=a")
	says(t, page, "Last failure before the morgue gave up", "Failure 503 at 7", "Failure 503 at 4")
	saysNot(t, page, "503 at 3", "Next run")
}
