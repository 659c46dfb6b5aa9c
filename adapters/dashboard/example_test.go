package dashboard_test

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// A user may see and act on one queue. His overview, errors, running jobs, schedules and search are
// of that queue; pages about other queues and about servers are refused.
func ExampleNew_oneQueue() {
	store := memory.New(memory.Options{})
	for _, queue := range []string{"orders", "salaries"} {
		if _, err := store.Declare(context.Background(), ports.DeclareRequest{Queue: queue, Shards: 1}); err != nil {
			log.Fatal(err)
		}
	}

	// Whoever is refused the queue "", which stands for all of them, is asked for each queue.
	authorize := func(r *http.Request, a httpapi.Action) error {
		name, password, _ := r.BasicAuth()
		if name != "ann" || subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 0 {
			return httpapi.ErrUnauthenticated
		}
		if a.Queue != "orders" {
			return errors.New("ann may see the queue orders only")
		}
		return nil
	}

	board, err := dashboard.New(inspect.New(store, inspect.Options{}), dashboard.Options{
		API: httpapi.Options{Authorize: authorize},
	})
	if err != nil {
		log.Fatal(err)
	}

	for _, page := range []string{"/", "/queue?q=orders", "/queue?q=salaries", "/nodes"} {
		r := httptest.NewRequest(http.MethodGet, page, nil)
		r.SetBasicAuth("ann", "secret")
		w := httptest.NewRecorder()
		board.ServeHTTP(w, r)
		fmt.Println(page, w.Code, "names salaries:", strings.Contains(w.Body.String(), ">salaries<"))
	}

	// Output:
	// / 200 names salaries: false
	// /queue?q=orders 200 names salaries: false
	// /queue?q=salaries 403 names salaries: false
	// /nodes 403 names salaries: false
}
