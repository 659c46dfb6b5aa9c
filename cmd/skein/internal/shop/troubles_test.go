package shop_test

import (
	"context"
	"encoding/json"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/cmd/skein/internal/shop"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/tier"
)

// troubles has the lines of the overview by their sign: the queue, server or store, and the text.
var troubles = map[string]string{
	"not served": `^reports No server runs this queue: .* jobs wait, 2 of them left by reports-1, which stopped responding `,
	"stuck":      `^exports export-2026-q3 has run for .* and is the only job that may run \(MaxRunning 1\); .* jobs wait behind it `,
	"failing":    `^emails .* of .* jobs failed within 10 min; \d+( or more)? died within the hour`,
	"hot shard":  `^search Shard \d+ is .* behind, .*; catalog-all has run for .* in it `,
	"late":       `^thumbnails .* behind`,
	"paused":     `^invoices Paused by ann.*; .* jobs wait `,
	"unreadable": `^orders 2 records can't be read`,
	"last retry": `^orders 1 job waits for the last of its 25 retries; .* order-970 `,
	"warning":    `^store persistence: jobs are kept in memory only`,
	"versions":   `^servers 2 versions run: v1.4.2 on worker-c; v1.5.0 on worker-a, worker-b `,
}

var (
	wrongLine = regexp.MustCompile(`(?s)<li class="[a-z]*" data-k="[^"]*">.*?</span> ([a-z ]+)</span></span>(.*?)</li>`)
	tags      = regexp.MustCompile(`<[^>]*>`)
)

// board is a dashboard of the shop in a test's bubble.
type board struct {
	t *testing.T
	http.Handler
}

func boardOf(t *testing.T, s *shop.Shop) board {
	t.Helper()
	d, err := dashboard.New(inspect.New(s.Store(), inspect.Options{Logger: slog.New(slog.DiscardHandler)}),
		dashboard.Options{})
	must(t, err)
	return board{t, d}
}

func (b board) do(r *http.Request) string {
	b.t.Helper()
	w := httptest.NewRecorder()
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	b.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.t.Fatalf("%s %s: %d, %.300s", r.Method, r.URL, w.Code, w.Body)
	}
	return w.Body.String()
}

// wrong returns the lines of faults, by their signs.
func (b board) wrong() map[string]string {
	b.t.Helper()
	lines := map[string]string{}
	for _, m := range wrongLine.FindAllStringSubmatch(b.do(httptest.NewRequest(http.MethodGet, "/", nil)), -1) {
		text := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(m[2], " "))), " ")
		lines[m[1]] = text
	}
	return lines
}

func (b board) hasTroubles(when string) {
	b.t.Helper()
	lines := b.wrong()
	for sign, want := range troubles {
		if !regexp.MustCompile(want).MatchString(lines[sign]) {
			b.t.Errorf("%s: %s is %q, want %s", when, sign, lines[sign], want)
		}
	}
	if len(lines) != len(troubles) {
		b.t.Errorf("%s: %d kinds of trouble, want %d: %q", when, len(lines), len(troubles), lines)
	}
}

// living runs a test in virtual time over a shop that is open.
func living(t *testing.T, test func(t *testing.T, s *shop.Shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s, err := shop.Open(ctx, nil)
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()

		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		}()

		test(t, s)
	})
}

// Each kind of trouble is a line of the overview 5 s after the shop has opened, also if the page is
// reloaded all the time, and none heals by itself.
func TestEachTroubleIsALineOfTheOverviewAndStays(t *testing.T) {
	living(t, func(t *testing.T, s *shop.Shop) {
		b := boardOf(t, s)
		for range 10 {
			b.wrong()
			time.Sleep(500 * time.Millisecond) // of virtual time
		}
		b.hasTroubles("after 5 s")
		time.Sleep(10 * time.Minute)
		b.wrong() // the first look after a while may show the previous result
		time.Sleep(3 * time.Second)
		b.hasTroubles("after 10 min")
	})
}

// No trouble heals within hours, although a store lists a server that is gone for an hour only.
func TestNoTroubleHealsWithinHours(t *testing.T) {
	tier.Long(t, "two hours of a shop take some seconds")
	living(t, func(t *testing.T, s *shop.Shop) {
		b := boardOf(t, s)
		before := queueLag(t, s, "thumbnails")
		time.Sleep(2 * time.Hour)
		b.wrong()
		time.Sleep(3 * time.Second)
		b.hasTroubles("after two hours")
		if after := queueLag(t, s, "thumbnails"); after < before {
			t.Errorf("thumbnails were %v behind, and are %v behind two hours later: they catch up", before, after)
		}
	})
}

func queueLag(t *testing.T, s *shop.Shop, queue string) time.Duration {
	t.Helper()
	return look(t.Context(), t, inspect.New(s.Store(), inspect.Options{})).queue(queue).Lag
}

// An action on all takes several calls, so that its page offers to stop it.
func TestAnActionOnAllIsLongEnoughToStop(t *testing.T) {
	living(t, func(t *testing.T, s *shop.Shop) {
		b, calls := boardOf(t, s), 0
		for next := ""; next != "" || calls == 0; calls++ {
			body, err := json.Marshal(map[string]any{"match": struct{}{}, "continue": next})
			must(t, err)

			r := httptest.NewRequest(http.MethodPost, "/api/v1/queues/emails/morgue/revive",
				strings.NewReader(string(body)))
			r.Header.Set("Content-Type", "application/json")

			var reply struct{ Continue string }
			must(t, json.Unmarshal([]byte(b.do(r)), &reply))
			next = reply.Continue
		}

		if calls < 4 { // of two seconds each
			t.Errorf("all of emails were revived by %d calls", calls)
		}
	})
}

// Unreadable records are shown until they are discarded.
func TestUnreadableRecordsCanBeDiscarded(t *testing.T) {
	living(t, func(t *testing.T, s *shop.Shop) {
		i := inspect.New(s.Store(), inspect.Options{Logger: slog.New(slog.DiscardHandler)})
		for left := int64(2); ; left-- {
			stats, err := i.Stats(t.Context(), "orders")
			must(t, err)
			if stats[0].Quarantined != left {
				t.Fatalf("%d records are counted, want %d", stats[0].Quarantined, left)
			}

			n := int64(0)
			var first inspect.QuarantinedRecord
			for r, err := range i.Quarantined(t.Context(), "orders") {
				must(t, err)
				if n++; n == 1 {
					first = r
				}
				if want := core.ShardOf(r.ID, stats[0].Queue.Shards); r.Shard.Index != want {
					t.Errorf("%s is in shard %d, but of %d", r.ID, r.Shard.Index, want)
				}
			}

			if n != left {
				t.Fatalf("%d records are listed, want %d", n, left)
			}
			if n == 0 {
				return
			}

			if discarded, err := i.Discard(t.Context(), first.Shard, first.Key); discarded != 1 || err != nil {
				t.Fatalf("Discard: %d, %v", discarded, err)
			}
		}
	})
}

// The shop's schedules fire, and the page shows the last ticks.
func TestSchedulesFire(t *testing.T) {
	living(t, func(t *testing.T, s *shop.Shop) {
		time.Sleep(14 * time.Minute) // of virtual time
		b := boardOf(t, s)
		page := b.do(httptest.NewRequest(http.MethodGet, "/schedules", nil))
		for _, want := range []string{
			"catalog-new", "Every minute", "Last ticks: 12 fired", "ledger", "Each day at 23:55",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("no %q in %s", want, page)
			}
		}
	})
}
