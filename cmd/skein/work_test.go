package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

const (
	secretOfTests = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	urlOfNobody   = "http://127.0.0.1:1/"
)

// The command handles the jobs of two queues by calls, keeps their results, and on a signal lets a
// running call end, while its probes say so.
func TestWork(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, address string) {
		began, finish := make(chan string), make(chan struct{})
		handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			began <- r.URL.Path + " " + string(text)
			<-finish
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `"handled"`)
		}))
		defer handler.Close()

		queues := fileOf(t, "# two\norders "+handler.URL+"/orders --shards 2 --keep 1h --secret-file "+
			fileOf(t, secretOfTests)+"\n\nmails "+handler.URL+"/mails --max-retries 0 --shards 1\n")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		url, ended := serves(t, ctx, nil, "work", "--queues-file", queues, "--url", address)
		awaitReady(t, url)
		for _, push := range []string{`orders 42 --payload {"paid":true} --score 7 --tag import`, "mails 1 --payload x"} {
			if code, said := run(t, address, "job push "+push); code != 0 {
				t.Fatalf("%d: %s", code, said)
			}
		}

		calls := []string{<-began, <-began}
		slices.Sort(calls)
		if !strings.HasPrefix(calls[0], `/mails {"version":1,"queue":"mails","id":"1","attempt":1,`) ||
			!strings.HasSuffix(calls[0], `"payloads":[{"data_base64":"eA==","score":`+scoreIn(t, calls[0])+"}]}") ||
			!strings.HasPrefix(calls[1], `/orders {"version":1,"queue":"orders","id":"42","attempt":1,`) ||
			!strings.HasSuffix(calls[1], `"tags":["import"],"payloads":[{"payload":{"paid":true},"score":7}]}`) {
			t.Errorf("%q", calls)
		}
		if _, metrics := get(t, url+"/metrics", "", ""); !strings.Contains(metrics, `skein_lanes`) {
			t.Errorf("no metrics: %s", metrics)
		}

		stop()
		status, said := get(t, url+"/readyz", "", "")
		if status != http.StatusServiceUnavailable || said != "stopping\n" {
			t.Errorf("/readyz: %d %s", status, said)
		}
		if status, said := get(t, url+"/livez", "", ""); status != http.StatusOK {
			t.Errorf("/livez: %d %s", status, said)
		}
		close(finish)
		if end := <-ended; end.code != 0 {
			t.Errorf("it ended with %d: %s", end.code, end.said)
		}

		backend, err := backends.Connect(t.Context(), address)
		must(t, err)
		defer func() { must(t, backend.Close()) }()
		f, err := inspect.New(backend.Store, inspect.Options{}).Find(t.Context(), "orders", "42")
		if err != nil || f.Past == nil || string(f.Past.Result) != `"handled"` || f.Queued != nil || f.Claimed != nil {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

// scoreIn returns the score in a call, which is the time of a push.
func scoreIn(t *testing.T, call string) string {
	t.Helper()
	var r struct {
		Payloads []struct{ Score json.Number }
	}
	_, body, _ := strings.Cut(call, " ")
	must(t, json.Unmarshal([]byte(body), &r))
	return r.Payloads[0].Score.String()
}

// awaitReady waits until a process is ready.
func awaitReady(t *testing.T, url string) {
	t.Helper()
	// On a slow machine this takes longer.
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(5 * time.Millisecond) {
		status, said := get(t, url+"/readyz", "", "")
		if status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d: %s", status, said)
		}
	}
}

// The flags of a queue are the options of its server: the store's layout and rule, and limits.
func TestWorkTakesTheStoresQueue(t *testing.T) {
	store := memory.New(memory.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{
		Queue: "orders", Shards: 3, IndexIDs: true, Merge: skein.Every().Last(5),
	})
	must(t, err)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan end, 1)
	go func() {
		code, _, said := runUntil(ctx, store, "work", "orders", urlOfNobody, "--listen", "127.0.0.1:0", "--max-lanes", "3",
			"--max-running", "5", "--rate", "10/1m")
		ended <- end{code, said}
	}()

	i := inspect.New(store, inspect.Options{})
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(time.Millisecond) { // on a slow machine longer
		nodes, err := i.Nodes(t.Context())
		must(t, err)
		if len(nodes) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no server")
		}
	}
	settings, err := i.Settings(t.Context(), "orders")
	must(t, err)
	stop()
	if end := <-ended; end.code != 0 {
		t.Errorf("it ended with %d: %s", end.code, end.said)
	}

	for _, s := range settings.Settings {
		want := map[string]string{"max-lanes": "3", "max-running": "5", "rate": "10/1m0s"}[s.Name]
		if want != "" && !slices.ContainsFunc(s.Code, func(c inspect.CodeValue) bool { return c.Value == want }) {
			t.Errorf("%+v, want %s", s, want)
		}
	}
}

// Mistakes are named before anything is stored or called.
func TestWorkNamesMistakes(t *testing.T) {
	store := memory.New(memory.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 3})
	must(t, err)

	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{}, 2, "give a queue and the URL of its handler"},
		{[]string{"orders"}, 2, "give a queue and the URL of its handler"},
		{[]string{"orders", "localhost:9000"}, 2, `begins with "localhost:"`},
		{[]string{"orders", "http://"}, 2, "has no host"},
		{[]string{"nowhere", urlOfNobody}, 3, "declare it with --shards"},
		{[]string{"orders", urlOfNobody, "--shards", "5"}, 2, `queue "orders" has 3`},
		{[]string{"orders", urlOfNobody, "--secret-file", "nowhere"}, 2, "--secret-file"},
		{[]string{"orders", urlOfNobody, "--secret-file", fileOf(t, "whsec_short")}, 2, "line 1 is no secret"},
		{[]string{"orders", urlOfNobody, "--call-timeout", "0"}, 2, "--call-timeout"},
		{[]string{"orders", urlOfNobody, "--timeout", "1s"}, 2, "limit a call by --call-timeout"},
		{[]string{"orders", urlOfNobody, "--lanes", "0"}, 2, "--lanes"},
		{[]string{"orders", urlOfNobody, "--max-retries", "-1"}, 2, "--max-retries"},
		{[]string{"orders", urlOfNobody, "--max-payloads", "0"}, 2, "--max-payloads"},
		{[]string{"orders", urlOfNobody, "--max-lanes", "-1"}, 2, "--max-lanes"},
		{[]string{"orders", urlOfNobody, "--max-running", "-1"}, 2, "--max-running"},
		{[]string{"orders", urlOfNobody, "--rate", "10"}, 2, "--rate"},
		{[]string{"orders", urlOfNobody, "--keep", "1s"}, 2, "--keep"},
		{[]string{"orders", urlOfNobody, "--shutdown-timeout", "0"}, 2, "--shutdown-timeout"},
		{[]string{"--queues-file", "nowhere"}, 2, "--queues-file"},
		{[]string{"--queues-file", fileOf(t, "# none\n")}, 2, "has no queue"},
		{[]string{"--queues-file", fileOf(t, "\norders\n")}, 2, "line 2: 1 words without the flags"},
		{[]string{"--queues-file", fileOf(t, "orders "+urlOfNobody+" --keep soon\n")}, 2, "line 1: --keep"},
		{[]string{"--queues-file", fileOf(t, "orders "+urlOfNobody+" --nope\n")}, 2, "line 1: unknown flag"},
		{[]string{"--queues-file", fileOf(t, "orders "+urlOfNobody+" --help\n")}, 2, "line 1: "},
		{[]string{"--queues-file", fileOf(t, strings.Repeat("orders "+urlOfNobody+"\n", 2))}, 2, "line 2: the queue orders"},
		{[]string{"--queues-file", fileOf(t, strings.Repeat("x", 70_000))}, 2, "line 1: 1 words"},
		{[]string{"--queues-file", fileOf(t, "orders "+urlOfNobody), "--keep", "1h"}, 2, "write them into a line"},
		{[]string{"--queues-file", fileOf(t, "orders "+urlOfNobody), "orders", urlOfNobody}, 2, "write them into a line"},
		{[]string{"orders", urlOfNobody, "--listen", "nowhere"}, 1, "can't serve at nowhere"},
	} {
		code, _, said := runOn(t, store, slices.Concat([]string{"work", "--listen", "127.0.0.1:0"}, tt.args)...)
		if code != tt.code {
			t.Errorf("%q: %d: %s", tt.args, code, said)
		}
		speaksOfFlags(t, strings.ReplaceAll(said, t.Name(), ""), tt.says) // without the names of files
	}

	p := process{stdin: strings.NewReader(""), stdout: io.Discard, stderr: new(strings.Builder), env: env("")}
	if code := p.run(t.Context(), []string{"work", "orders", "--url", urlOfNobody}); code != 2 ||
		!strings.Contains(p.stderr.(*strings.Builder).String(), "skein work orders URL") {
		t.Errorf("the handler's URL as --url: %d: %s", code, p.stderr)
	}
}
