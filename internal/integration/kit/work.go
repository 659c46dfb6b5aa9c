package kit

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// ServeAPI serves the API of a store, and returns its URL.
func ServeAPI(t *testing.T, store ports.ShardStore) string {
	t.Helper()
	api, err := httpapi.New(inspect.New(store, inspect.Options{}), httpapi.Options{})
	Must(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return server.URL
}

// OwnWork is the queue "orders" at work: jobs that are pushed all the time, and revived ones. It
// counts them, and the revived ones that ran twice.
type OwnWork struct {
	Own, Revived, Twice atomic.Int64
	seen                sync.Map
	stop                context.CancelFunc
	ended               chan error
}

// StartOwnWork starts a server and a client that pushes.
func StartOwnWork(t *testing.T, o Orders) *OwnWork {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &OwnWork{stop: stop, ended: make(chan error, 2)}

	queue := skein.NewQueue("orders",
		skein.QueueOptions[[]byte]{Shards: o.Shards, IndexIDs: true, Codec: skein.RawCodec{}})
	server := skein.NewServer(o.Store, skein.ServerOptions{Lanes: 50},
		queue.Handler(func(_ context.Context, id string, _ [][]byte) error {
			if strings.HasPrefix(id, "dead-") {
				if _, again := w.seen.LoadOrStore(id, true); again {
					w.Twice.Add(1)
				}
				w.Revived.Add(1)
				return nil
			}
			time.Sleep(5 * time.Millisecond)
			w.Own.Add(1)
			return nil
		}))

	go func() { w.ended <- server.Run(ctx) }()

	client := skein.NewClient(o.Store, skein.ClientOptions{})
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			entries := make([]skein.Entry[[]byte], 400)
			for i := range entries {
				entries[i] = skein.Entry[[]byte]{ID: fmt.Sprintf("own-%d-%d", n, i), Payload: []byte("x")}
			}
			if err := queue.PushMany(ctx, client, entries); err != nil && ctx.Err() == nil {
				w.ended <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		w.ended <- nil
	}()

	return w
}

// Rate returns how many jobs a second the queue does, without the revived ones, measured for a time
// d.
func (w *OwnWork) Rate(d time.Duration) float64 {
	before := w.Own.Load()
	time.Sleep(d)
	return float64(w.Own.Load()-before) / d.Seconds()
}

// End stops both.
func (w *OwnWork) End(t *testing.T) {
	t.Helper()
	w.stop()
	Must(t, <-w.ended)
	Must(t, <-w.ended)
}
