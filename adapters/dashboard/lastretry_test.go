package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// fail lets jobs of orders fail so that they have failed so often, and wait an hour.
func (h *house) fail(failures int, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.push("orders", id, 0, "p")
	}
	for index := range houseShards {
		for claims := h.turn("orders", index, core.MaxTurnJobs); len(claims) > 0; claims = h.turn(
			"orders", index, core.MaxTurnJobs,
		) {
			var settle []core.Settlement
			for _, c := range claims {
				s := core.Settlement{ID: c.ID, Receipt: c.Receipt, Failed: true, Rest: core.Requeue}
				s.PutBack = core.PutBack{Delay: time.Hour, RetryCount: failures - 1, Failures: core.Failures{{Text: "boom"}}}
				settle = append(settle, s)
			}
			h.turn("orders", index, 0, settle...)
		}
	}
}

// serves lets a server announce that it retries jobs of orders so often.
func (h *house) serves(retries int) {
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", MaxRetries: retries}},
	}})
}

// Jobs whose next failure ends in the morgue are a line, which leads to the list that begins with
// them. They are looked for, by one bounded list, if a queue's servers announce how often it
// retries.
func TestJobsAtTheirLastRetryAreALine(t *testing.T) {
	h := newHouse(t, Options{})
	h.fail(6, numbered("early-", 200)...)
	says(t, h.get("/"), "Nothing is wrong")
	if len(h.store.jobs) > 0 {
		t.Errorf("without a server that says how often jobs are retried, %d lists were read", len(h.store.jobs))
	}
	h = newHouse(t, Options{})
	h.serves(25)
	h.fail(24, numbered("early-", 200)...)
	h.fail(25, "late-1", "late-2")
	page := h.get("/")
	says(t, page,
		"last retry orders 2 jobs wait for the last of their 25 retries; "+
			"if it fails, a payload goes to the morgue or the job is held: late-1, late-2")
	if len(h.store.jobs) != 1 || h.store.jobs[0].Limit > 101 || h.store.jobs[0].From == nil {
		t.Errorf("a look has read the lists %+v", h.store.jobs)
	}
	const link = "jobs?desc=1&amp;list=retries&amp;q=orders&amp;sort=count"
	if !strings.Contains(page, link) {
		t.Errorf("no link to %s", link)
	}
	list := answerOf(h.board, request(http.MethodGet, "/"+strings.ReplaceAll(link, "&amp;", "&"), nil)).Body.String()
	if first, other := strings.Index(list, `data-k="late-`), strings.Index(list, `data-k="early-`); first < 0 ||
		other < first {
		t.Errorf("the list begins with others: %s", words(list))
	}
}

// The line comes with the first look after a server has announced how often it retries, though the
// other details were read a moment ago.
func TestTheLineOfTheLastRetryComesWithTheServer(t *testing.T) {
	h := newHouse(t, Options{})
	h.fail(25, "late")
	says(t, h.get("/"), "Nothing is wrong")
	h.serves(25)
	says(t, h.get("/"), "1 job waits for the last of its 25 retries")
	read := len(h.store.jobs)
	says(t, h.get("/"), "1 job waits for the last of its 25 retries")
	if n := len(h.store.jobs); read != 1 || n != read {
		t.Errorf("%d lists were read, then %d", read, n)
	}
}

// An error of the list is shown, since the line may be missing.
func TestAListOfLastRetriesThatFailsIsSaid(t *testing.T) {
	h := newHouse(t, Options{})
	h.serves(25)
	h.fail(25, "late")
	h.store.jobsFail = errors.New("no list")
	saysNot(t, h.get("/"), "last of its 25 retries")
	says(t, h.get("/queue?q=orders"), "no list")
}

// A queue with few retries has jobs at their last one as a matter of course.
func TestFewRetriesAreNoLine(t *testing.T) {
	for retries, line := range map[int]bool{1: false, 4: false, 5: true} {
		h := newHouse(t, Options{})
		h.serves(retries)
		h.fail(retries, "a")
		if page := h.get("/"); strings.Contains(page, "a payload goes to the morgue") != line {
			t.Errorf("with %d retries: %s", retries, words(page))
		}
	}
}

func TestIDsAtTheirLastRetryAreRedacted(t *testing.T) {
	o := Options{}
	o.API.RedactID = func(_, id string) string { return fmt.Sprintf("id of %d", len(id)) }
	h := newHouse(t, o)
	h.serves(9)
	h.fail(9, "secret")
	page := h.get("/")
	says(t, page, "or the job is held: id of 6")
	saysNot(t, page, "secret")
}
