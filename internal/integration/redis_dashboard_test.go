package integration_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// The overview says that a master of a Cluster is dead, as a browser sees it that asks again and again, and it shows the rest, also if
// that master has the list of queues and servers, and hangs. How soon is logged: within 5 s on a machine that has nothing else to do, to which
// the tests of package dashboard hold it.
func TestRedisDeadMasterIsOnTheDashboard(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	t.Run("of shards", func(t *testing.T) {
		o := newOutage(t)
		failing, lost, _ := o.without("skein:queues")
		o.seenOnTheDashboard(lost, func() { testservers.Kill(t, failing) })
	})
	t.Run("of the list, which hangs", func(t *testing.T) {
		o := newOutage(t)
		node, err := o.cluster.MasterForKey(t.Context(), "skein:queues")
		must(t, err)
		failing := testservers.RedisNode(t, node.Options().Addr)
		lost, _ := o.divideBy(failing)
		o.seenOnTheDashboard(lost, func() { testservers.Freeze(t, failing) })
	})
}

func (o *outage) seenOnTheDashboard(lost []int, begin func()) {
	o.Helper()
	store := redis.New(o.connect(), redis.Options{})
	_, err := store.Declare(o.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(o, err)
	board, err := dashboard.New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), dashboard.Options{})
	must(o, err)
	look := func() string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:9"
		w := httptest.NewRecorder()
		board.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "queue?q=outages") {
			o.Errorf("status %d: %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	began := time.Now()
	for strings.Contains(look(), "be reached") { // a busy machine may be late with a part
		if time.Since(began) > testservers.Patience {
			o.Fatal("a shard can't be reached before the outage")
		}
		time.Sleep(100 * time.Millisecond)
	}
	begin()
	began = time.Now()
	want := fmt.Sprintf("%d shards can&#39;t be reached, the first is %d", len(lost), lost[0])
	for !strings.Contains(look(), want) {
		if time.Since(began) > testservers.Patience {
			o.Fatalf("after %v the overview does not say %q: %s", time.Since(began), want, look())
		}
		time.Sleep(500 * time.Millisecond)
	}
	o.Logf("it was said after %v", time.Since(began))
}
