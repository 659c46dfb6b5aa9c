package cluster_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports/storekit"
)

// The first look after a master of a Cluster has died shows on the overview that its shards can't
// be reached. The other shards have their figures. The same holds if that master hangs and has the
// list of queues. Each look has a deadline. So a browser shows it within 5 s: a page looks every 2
// s if looks are quick, and a look waits about a second for a master that can't be reached.
func TestRedisDeadMasterIsOnTheDashboard(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	t.Run("of shards", func(t *testing.T) {
		o := newOutage(t)
		failing, lost, healthy := o.without("skein:queues")
		o.seenOnTheDashboard(lost, healthy, func() { testservers.Kill(t, failing) })
	})
	t.Run("of the list, which hangs", func(t *testing.T) {
		o := newOutage(t)
		failing, lost, healthy := o.registry()
		o.seenOnTheDashboard(lost, healthy, func() { testservers.Freeze(t, failing) })
	})
}

// looked counts the calls of Stats, each of which must have a deadline.
type looked struct{ begun, unbounded atomic.Int64 }

func (l *looked) count(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
	if call.Method == "Stats" {
		l.begun.Add(1)
		if _, bounded := ctx.Deadline(); !bounded {
			l.unbounded.Add(1)
		}
	}
	return next(ctx)
}

var (
	awayLine  = regexp.MustCompile(`(\d+) shards can&#39;t be reached`)
	rowFigure = regexp.MustCompile(`data-l="(lag|waiting|running)"[^>]*><(?:a|span)[^>]*>([^<]*)<`)
)

// overview returns how many shards can't be reached by the overview, and how many jobs of a queue
// it shows as waiting.
func (o *outage) overview(board http.Handler, queue string) (away int, waiting string) {
	o.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:9"
	w := httptest.NewRecorder()
	board.ServeHTTP(w, r)
	_, row, found := strings.Cut(w.Body.String(), `<tr data-k="`+queue+`">`)
	if w.Code != http.StatusOK || !found {
		o.Fatalf("status %d, and no row of %s: %s", w.Code, queue, w.Body)
	}
	row, _, _ = strings.Cut(row, "</tr>")
	for _, m := range rowFigure.FindAllStringSubmatch(row, -1) {
		if m[1] == "waiting" {
			waiting = m[2]
		}
	}
	if m := awayLine.FindStringSubmatch(w.Body.String()); m != nil {
		away, _ = strconv.Atoi(m[1])
	}
	return away, waiting
}

func (o *outage) seenOnTheDashboard(lost, healthy []int, begin func()) {
	o.Helper()
	store := redis.New(o.connect(), redis.Options{})
	o.fill(store)
	var looks looked
	inspector := inspect.New(storekit.Intercept(store, looks.count),
		inspect.Options{Logger: slog.New(slog.DiscardHandler)})
	board, err := dashboard.New(inspector, dashboard.Options{})
	must(o, err)
	// until reloads the overview until it has the figures of the given shards, and shows that the
	// others can't be reached. On a busy machine a shard that is reached may be late too.
	until := func(shards []int) {
		o.Helper()
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			away, waiting := o.overview(board, "outages")
			if away == outageShards-len(shards) && waiting == strconv.Itoa(len(shards)) {
				return
			}
			if time.Since(began) > testservers.Patience {
				o.Fatalf("%d shards are away and %s jobs wait; want those of shards %v", away, waiting, shards)
			}
		}
	}
	until(append(slices.Clone(lost), healthy...))
	begin()
	before := looks.begun.Load()
	for began := time.Now(); looks.begun.Load() == before; time.Sleep(100 * time.Millisecond) { // the earlier result is shown
		if away, _ := o.overview(board, "outages"); looks.begun.Load() > before {
			if n := looks.begun.Load() - before; away < len(lost) || n > 1 {
				o.Errorf("after %d looks the overview says that %d shards are away; want %d after one",
					n, away, len(lost))
			}
			o.Logf("it was shown after %v", time.Since(began))
		}
		if time.Since(began) > testservers.Patience {
			o.Fatal("the overview does not look again")
		}
	}
	until(healthy)
	if n := looks.unbounded.Load(); n > 0 {
		o.Errorf("%d of %d looks had no deadline", n, looks.begun.Load())
	}
}
