package main

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// The program is there to be copied, so it uses what others can import.
func TestItUsesNothingInternal(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			if strings.Contains(imported.Path.Value, "/internal/") {
				t.Errorf("%s imports %s", name, imported.Path.Value)
			}
		}
	}
}

func TestItIsNotReadyOnceItStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	store := memory.New(memory.Options{})
	answers, err := routes(ctx, store, skein.NewClient(store, skein.ClientOptions{}))
	if err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"server: ", "stopping"} { // none runs; and then
		answer := httptest.NewRecorder()
		answers.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if answer.Code != http.StatusServiceUnavailable || !strings.HasPrefix(answer.Body.String(), want) {
			t.Errorf("/readyz answers %d %s, want %s", answer.Code, answer.Body, want)
		}
		stop()
	}
}

func TestItOpensOnlyStoresThatItKnows(t *testing.T) {
	for storeURL, want := range map[string]bool{
		"memory://":               true,
		"redis://localhost:1/0":   true,
		"redis://localhost:1/x":   false,
		"postgres://localhost:x/": false,
		"mysql://":                false,
	} {
		_, closeStore, err := openStore(t.Context(), storeURL)
		if (err == nil) != want {
			t.Errorf("openStore(%q) = %v", storeURL, err)
		}
		if err == nil {
			closeStore()
		}
	}
}

func TestItWorksWhatItTakesAndStopsGracefully(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	before := executed()
	ctx, stop := context.WithCancel(t.Context())
	began, finish, stopped := make(chan string), make(chan error), make(chan error)
	go func() {
		stopped <- serve(ctx, memory.New(memory.Options{}), l,
			func(_ context.Context, id string, events []event) error {
				began <- fmt.Sprint(id, events)
				return <-finish
			})
	}()

	if status, answer := post(t, l, "order-1", "paid"); status != http.StatusOK {
		t.Fatalf("it answered %d %s", status, answer)
	}
	if got := <-began; got != "order-1[{1 paid}]" {
		t.Errorf("it handled %s", got)
	}
	for _, path := range []string{"/debug/vars", "/livez", "/readyz", "/jobs/", "/jobs/api/v1/stats"} {
		answer, err := http.Get(fmt.Sprintf("http://%v%s", l.Addr(), path))
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, answer.Status)
		}
		_ = answer.Body.Close()
	}
	if status, answer := post(t, l, "order-1", ""); status != http.StatusBadRequest {
		t.Errorf("an event that says nothing: %d %s", status, answer)
	}
	if status, answer := post(t, l, "line\nfeed", "paid"); status != http.StatusBadRequest {
		t.Errorf("an id that is refused: %d %s", status, answer)
	}

	stop()
	select {
	case err := <-stopped:
		t.Fatalf("it did not wait for its handler: %v", err)
	case finish <- errors.New("the log shows this"):
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if n := executed() - before; n != 1 {
		t.Errorf("metrics count %d executions, want 1", n)
	}
}

func executed() int64 {
	if n, ok := executions.Get("orders").(*expvar.Int); ok {
		return n.Value()
	}
	return 0
}

func post(t *testing.T, l net.Listener, id, what string) (status int, answer string) {
	t.Helper()
	where := fmt.Sprintf("http://%v/orders/%s", l.Addr(), url.PathEscape(id))
	response, err := http.PostForm(where, url.Values{"number": {"1"}, "what": {what}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
