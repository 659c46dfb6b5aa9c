package kills_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// overHTTP revives all dead letters that match over HTTP, call by call, as a page does.
func overHTTP(j journal) error {
	at := os.Getenv(continueVariable)
	for {
		j.write(journalLine{what: lineReady, pid: os.Getpid(), id: at})
		body := map[string]any{"match": map[string]string{}, "continue": at}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reply, err := http.Post(os.Getenv(apiVariable)+"/api/v1/queues/orders/morgue/revive", "application/json",
			bytes.NewReader(text))
		if err != nil {
			return err
		}
		var progress struct{ Continue, Detail string }
		err = json.NewDecoder(reply.Body).Decode(&progress)
		_ = reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %w", reply.Status, progress.Detail, err)
		}
		if progress.Continue == "" {
			return nil
		}
		at = progress.Continue
	}
}

// Dead letters are revived over HTTP by clients, all but the last of which are killed, while a
// server works the same queue. Each letter runs once, and the queue keeps working.
// SKEIN_TEST_LIST_JOBS makes them many.
func TestRevivingOverHTTPGoesOnAfterKills(t *testing.T) {
	tier.Long(t, "kills processes at length")
	t.Parallel()
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			store := kit.Open(t, newURL(t))
			o := kit.Orders{T: t, Store: store, Shards: kit.FromVariable(t, "SKEIN_TEST_LIST_SHARDS", 20)}
			_, err := store.Declare(t.Context(),
				ports.DeclareRequest{Queue: "orders", Shards: o.Shards, IndexIDs: true})
			must(t, err)
			letters := kit.FromVariable(t, "SKEIN_TEST_LIST_JOBS", 20_000) / 10
			o.Push("dead", letters)
			o.Bury()

			w := kit.StartOwnWork(t, o)
			alone := w.Rate(2 * time.Second)
			began, sum := time.Now(), w.Own.Load()
			kills := killActing(t, "", "revive over HTTP", func(int) {}, apiVariable+"="+kit.ServeAPI(t, store))
			took := time.Since(began)
			meanwhile := float64(w.Own.Load()-sum) / took.Seconds()
			for w.Revived.Load() < int64(letters) && t.Context().Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			w.End(t)
			if dead := o.Counts(t).Dead; dead != 0 || w.Revived.Load() != int64(letters) || w.Twice.Load() != 0 {
				t.Errorf("%d letters are dead, %d ran, %d of them twice; want 0, %d and 0",
					dead, w.Revived.Load(), w.Twice.Load(), letters)
			}
			t.Logf("%d letters over %d shards revived in %v by %d clients, of which all but the last were killed; "+
				"the queue did %.0f jobs a second before, and %.0f meanwhile beside the revived",
				letters, o.Shards, took.Round(10*time.Millisecond), kills, alone, meanwhile)
		})
	}
}
