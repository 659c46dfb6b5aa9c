package dashboard

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// A request that comes while another looks gets the previous result, or waits for the new one, but
// no longer than its own limit.
func TestWhoAsksWhileAnotherLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.board.looker.clock = time.Now // which is the bubble's
		const took = 4 * time.Second
		h.store.onHistory = func() { time.Sleep(took / 2) } // it is read twice
		first := make(chan *snapshot, 1)
		go func() {
			s, _ := h.board.looker.look(context.Background())
			first <- s
		}()
		synctest.Wait()
		impatient, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if _, err := h.board.looker.look(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits a second: %v", err)
		}
		s, err := h.board.looker.look(context.Background())
		if was := <-first; err != nil || s != was || h.store.looks != 1 {
			t.Errorf("who waits has another answer after %d looks, %v", h.store.looks, err)
		}
		h.board.looker.acted()
		time.Sleep(maxDetail)
		go func() {
			s, _ := h.board.looker.look(context.Background())
			first <- s
		}()
		synctest.Wait()
		began := time.Now()
		if again, err := h.board.looker.look(context.Background()); err != nil || again != s || time.Since(began) != 0 {
			t.Errorf("who asks meanwhile waits %v, or has not what was found before: %v", time.Since(began), err)
		}
		if was := <-first; was == s || h.store.looks != 2 {
			t.Errorf("%d looks", h.store.looks)
		}
		if last, err := h.board.looker.look(context.Background()); err != nil || h.store.looks != 2 || last == s {
			t.Errorf("%d looks, %v", h.store.looks, err)
		}
	})
}

// A look during an action may be out of date: the next page looks anew.
func TestALookDuringAnActionIsStale(t *testing.T) {
	h := newHouse(t, Options{})
	h.store.onHistory = h.board.looker.acted
	for n := range 2 {
		if _, err := h.board.looker.look(t.Context()); err != nil || h.store.looks != n+1 {
			t.Fatalf("%d looks after %d pages, %v", h.store.looks, n+1, err)
		}
		h.store.onHistory = nil
	}
}

// Looks at a silent store say since when, also after several, and go on with the store's clock. The
// reason is redacted.
func TestLooksAtASilentStore(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{RedactError: func(string, string, string) string { return "hidden" }}})
	h.board.looker.clock = h.clock
	look := func(after time.Duration, fail error) *snapshot {
		t.Helper()
		h.advance(after)
		h.store.statsFail = fail
		h.board.looker.acted()
		s, err := h.board.looker.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}

	refused := errors.New("refused by secret")
	for _, tt := range []struct {
		after            time.Duration
		fail             error
		answered, silent time.Duration
		text             string
	}{
		{time.Second, nil, 1 * time.Second, -1, ""}, // it has not been silent yet
		{time.Minute, refused, 1 * time.Second, 61 * time.Second, "hidden"},
		{time.Minute, refused, 1 * time.Second, 61 * time.Second, "hidden"},
		{time.Minute, nil, 181 * time.Second, 61 * time.Second, ""},
		{time.Minute, refused, 181 * time.Second, 241 * time.Second, "hidden"},
	} {
		s := look(tt.after, tt.fail)
		silent := s.silent.IsZero() && tt.silent < 0 || s.silent.Sub(epoch) == tt.silent
		if s.answered.Sub(epoch) != tt.answered || !silent || s.view.Silence != tt.text {
			t.Errorf("answered at %v, silent at %v, %q; want %+v", s.answered, s.silent, s.view.Silence, tt)
		}
		if !s.view.Now.Equal(h.clock()) {
			t.Errorf("now is %v, want %v", s.view.Now, h.clock())
		}
	}
}

// Values that change slowly rest longer than the sizes of queues, and so do the checks; and each
// rests longer the more it costs.
func TestHistoriesAndChecksRestLonger(t *testing.T) {
	for cost, rest := range map[time.Duration]time.Duration{
		0:                      detailRest,
		500 * time.Millisecond: 99 * 500 * time.Millisecond,
		10 * time.Second:       maxDetail,
	} {
		h := newHouse(t, Options{})
		var mu sync.Mutex // the servers are looked at beside other calls
		now := time.Now()
		clock := func(passed time.Duration) time.Time {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(passed)
			return now
		}
		histories, checks := 0, 0
		h.store.onHistory = func() {
			if histories++; histories%2 == 1 { // an hour and a day are one look
				clock(cost)
			}
		}
		board, err := New(inspect.New(&checked{h.store, func() {
			checks++
			clock(cost)
		}}, inspect.Options{}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		board.looker.clock = func() time.Time { return clock(0) }
		look := func() {
			board.looker.acted()
			if _, err := board.looker.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		look()
		look() // if checks take long, slow values come with the next look
		was := [2]int{histories, checks}
		began := now
		for now.Sub(began) < rest-cost-time.Second {
			look()
			now = now.Add(min(time.Second, rest/4))
		}
		if histories != was[0] || checks != was[1] {
			t.Errorf("a look of %v at each is followed by %d histories and %d checks within %v",
				cost, histories-was[0], checks-was[1], rest)
		}
		now = began.Add(rest)
		look()
		look()
		if histories == was[0] || checks == was[1] {
			t.Errorf("after %v nothing is read again: %d histories, %d checks", rest, histories-was[0], checks-was[1])
		}
	}
}

// The audit is searched for the pauses of queues at once if a queue is newly paused, then seldom, and
// more often while a pause is not in it. What is known stays while the audit can't be read.
func TestTheAuditIsSearchedForPauses(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	l := h.board.looker
	l.clock = h.clock
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	look := func(what string, after time.Duration, searched bool, known ...string) {
		t.Helper()
		h.advance(after)
		l.acted()
		before := h.store.audits
		s, err := l.look(t.Context())
		must(err)
		if got := slices.Sorted(maps.Keys(s.view.Pauses)); !slices.Equal(got, known) {
			t.Errorf("%s: the pauses of %q are known, want %q", what, got, known)
		}
		if (h.store.audits > before) != searched {
			t.Errorf("%s: searched %v, want %v", what, !searched, searched)
		}
	}

	pause := func(queue string) { must(l.inspector.Pause(t.Context(), queue)) }
	look("nothing is paused", 0, false)
	pause("orders")
	look("a new pause", 0, true, "orders")
	look("known", maxDetail-1, false, "orders")
	look("known for long", 1, true, "orders")

	must(h.store.Pause(t.Context(), "mails")) // which is not in the audit
	look("an unknown pause", detailRest-1, false, "orders")
	look("unknown for a while", 1, true, "orders")
	h.store.auditFail = errors.New("refused")
	look("the audit can't be read", detailRest, true, "orders")
	look("it is not tried again at once", detailRest-1, false, "orders")
	h.store.auditFail = nil
	pause("mails")
	look("it can be read again", 1, true, "mails", "orders")

	must(l.inspector.Resume(t.Context(), "orders"))
	look("one is resumed", 0, false, "mails")
	must(l.inspector.Resume(t.Context(), "mails"))
	look("all are resumed", 0, false)
	pause("orders")
	look("the next pause", 0, true, "orders")
}

// checked is a store that calls something when it is checked.
type checked struct {
	*faulty
	onCheck func()
}

func (s *checked) Check(ctx context.Context) ([]ports.Check, error) {
	s.onCheck()
	return s.faulty.Check(ctx)
}

// Dead letters of longer ago than an hour have not died of late.
func TestOldDeathsAreNotNew(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}})
	h.ended(core.Buried, "boom", "a")
	h.advance(2 * time.Hour)
	h.ended(core.Buried, "boom", "b", "c")
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}})
	says(t, h.get("/"), "2 died within the last hour")
	h.advance(2 * time.Hour)
	h.board.looker.last = nil
	saysNot(t, h.get("/"), "buried within")
}
