package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// hostile are texts that pages must show as text. Those that are valid ids are used as ids.
var hostile = []string{
	`<script>document.title = "taken"</script>`, `"><img src=x onerror=alert(1)>`, "a\u202egnp.exe", "..",
	"/", "%", "%2e%2e%2f", "a&b=c;d+e?f#g", `{{.}}`,
	"javascript:alert(1)", strings.Repeat("x", 512), strings.Repeat("é́", 100), "</time><script>x", "\u2066\u200bzero",
	"😀 👩‍👩‍👧",
}

var quietly = slog.New(slog.DiscardHandler)

// house is a dashboard of a memory store, at an address of this machine, with everything that pages
// can show: "orders" is served, and has hostile jobs that wait, run, fail and are dead; "wide" has
// wideShards shards that nobody serves; "paused" is paused.
type house struct {
	t       testing.TB
	url     string
	board   *dashboard.Dashboard
	store   *damaged
	client  *skein.Client
	inspect *inspect.Inspector
	orders  *skein.Queue[[]byte]
	wide    *skein.Queue[[]byte]
	paused  *skein.Queue[[]byte]
	// asked counts the requests to the dashboard.
	asked atomic.Int64
	// inPieces is set if pages are sent in pieces, slowly.
	inPieces atomic.Bool
	// stands is the time at which the store's clock stands, nil while it goes.
	stands atomic.Pointer[time.Time]
}

func (h *house) clock() time.Time {
	if at := h.stands.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// settle lets nothing become later or due any more, and waits until the dashboard knows all that
// is wrong, which it finds by several looks. So what pages show stays the same however long a test
// takes.
func (h *house) settle() {
	h.t.Helper()
	now := time.Now()
	h.stands.Store(&now)
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		page := h.get("")
		if !slices.ContainsFunc([]string{
			"died within the last hour", "No server runs this queue", "read: set aside", "Paused; 1 job waits",
		}, func(text string) bool { return !strings.Contains(page, text) }) {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("the overview does not say all that is wrong: %s", page)
		}
	}
}

// get returns a page as the server sends it.
func (h *house) get(path string) string {
	h.t.Helper()
	r, err := http.Get(h.url + path)
	h.must(err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	h.must(err)
	return string(text)
}

// damaged is a store with a record that can't be read, until it is discarded.
type damaged struct {
	*memory.Store
	mended atomic.Bool
	// grown reports whether figures are as large as they get.
	grown atomic.Bool
	// silent reports whether the store gives no figures.
	silent atomic.Bool
	// listless reports whether it lists no jobs either.
	listless atomic.Bool
}

func (s *damaged) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	if s.listless.Load() {
		return ports.JobsPage{}, errors.New("dial tcp 10.0.4.7:6379: i/o timeout")
	}
	return s.Store.Jobs(ctx, r)
}

func (s *damaged) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	reply, err := s.Store.QuarantinedShards(ctx, r)
	if r.Queue == "orders" && !s.mended.Load() {
		reply.Shards = append(reply.Shards, core.Shard{Queue: r.Queue})
	}
	return reply, err
}

func (s *damaged) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	page, err := s.Store.Quarantined(ctx, r)
	if !s.mended.Load() && r.Shard.Queue == "orders" && r.Shard.Index == 0 {
		page.Records = append(page.Records, ports.QuarantinedRecord{
			Key:    "<b>key",
			ID:     hostile[1],
			Reason: hostile[0],
			Stored: []byte(hostile[0]),
			Size:   40,
		})
	}
	return page, err
}

func (s *damaged) Discard(_ context.Context, r ports.DiscardRequest) (int, error) {
	if slices.Contains(r.Keys, "<b>key") && !s.mended.Swap(true) {
		return 1, nil
	}
	return 0, nil
}

func (s *damaged) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	if s.silent.Load() {
		return nil, errors.New("dial tcp 10.0.4.7:6379: i/o timeout")
	}
	stats, err := s.Store.Stats(ctx, r)
	for at := range stats {
		if stats[at].Queue.Name == "orders" && !s.mended.Load() {
			stats[at].Quarantined, stats[at].Shards[0].Quarantined = 1, 1
		}
		if s.grown.Load() {
			grow(&stats[at])
		}
	}
	return stats, err
}

// wideShards is the number of shards of the queue "wide". Axe's rule on contrast takes long on a
// map of 1,000.
func wideShards() int { return tier.Count(64, 1000) }

func newHouse(t testing.TB, o dashboard.Options) *house {
	t.Helper()
	h := &house{t: t}
	h.store = &damaged{Store: memory.New(memory.Options{Clock: h.clock})}
	raw := func(shards int) skein.QueueOptions[[]byte] {
		return skein.QueueOptions[[]byte]{
			Codec:    skein.RawCodec{},
			Shards:   shards,
			IndexIDs: true,
			Backoff:  func(int) time.Duration { return time.Hour },
		}
	}
	h.orders, h.wide, h.paused =
		skein.NewQueue("orders", raw(4)), skein.NewQueue("wide", raw(wideShards())), skein.NewQueue("paused", raw(2))
	h.client = skein.NewClient(h.store, skein.ClientOptions{})
	h.inspect = inspect.New(h.store, inspect.Options{Logger: quietly})
	board, err := dashboard.New(h.inspect, o)
	h.must(err)
	h.board = board
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		if h.inPieces.Load() && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			r.Header.Del("Accept-Encoding")
			w = pieces{w}
		}
		board.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	h.url = listener.URL + "/"
	h.serve()
	return h
}

// serve lets a server work orders until the test ends.
func (h *house) serve() {
	handler := h.orders.JobHandler(func(ctx context.Context, job *skein.Job[[]byte]) error {
		switch what := string(job.Payloads[0].Value); {
		case strings.HasPrefix(what, "fail"):
			return errors.New(strings.Join(hostile, " ") + strings.Repeat("\nat some.function()", 30))
		case strings.HasPrefix(what, "die"):
			return skein.Bury(errors.New(hostile[0] + what))
		case strings.HasPrefix(what, "run"):
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	server := skein.NewServer(h.store, skein.ServerOptions{
		Name:            hostile[1],
		Version:         hostile[0],
		Logger:          quietly,
		Lanes:           40,
		PollInterval:    50 * time.Millisecond,
		ShutdownTimeout: time.Millisecond,
	}, handler)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	h.t.Cleanup(func() {
		stop()
		<-ended
	})
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// push pushes payloads for an id of a queue, in their order.
func (h *house) push(q *skein.Queue[[]byte], id string, in time.Duration, payloads ...string) {
	h.t.Helper()
	for n, p := range payloads {
		h.must(q.Push(h.t.Context(), h.client, id, []byte(p), skein.In(in), skein.Score(float64(n))))
	}
}

// furnish makes something to see on every page.
func (h *house) furnish() {
	h.t.Helper()
	kinds := []string{"run", "fail", "die", "wait"}
	for n, id := range hostile {
		kind := kinds[n%len(kinds)]
		h.push(h.orders, id, map[bool]time.Duration{true: time.Hour}[kind == "wait"], kind+" 1", "\xff\xfe<script>",
			`{"order": {"lines": [1, 2, 3]}}`, strings.Repeat("long ", 4000))
	}
	for n := range 300 {
		h.push(h.wide, fmt.Sprintf("order-%03d", n), 0, "p")
	}
	h.push(h.wide, "twice", 0, "p")
	h.push(h.paused, "twice", 0, "p")
	h.must(h.inspect.Pause(h.t.Context(), "paused"))
	yearly := skein.Cron("30 0 1 1 *", "Europe/Madrid")
	for _, id := range []string{hostile[0], "..", "tenant-7"} {
		h.must(h.orders.Schedule(h.t.Context(), h.client, "yearly", yearly, id, []byte(`{"days": 365}`)))
	}
	h.must(h.wide.Schedule(h.t.Context(), h.client, strings.Repeat("long-name.", 12), skein.Interval(24*time.Hour),
		"tenant-7", nil, skein.Paused()))
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Claimed == 4 && s.Retrying == 4 && s.Dead == 4 })
}

// sees waits until a queue's figures are as they must be.
func (h *house) sees(queue string, as func(*ports.QueueStats) bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		stats, err := h.store.Stats(h.t.Context(), ports.StatsRequest{Queues: []string{queue}})
		h.must(err)
		if len(stats) == 1 && as(&stats[0]) {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("the figures of %s stay %+v", queue, stats)
		}
	}
}
