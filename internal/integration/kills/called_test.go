package kills_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/internal/webhook"
)

// called is a queue whose handler is the Python of docs/guide/work.md.
var called = skein.NewQueue[[]byte]("called", skein.QueueOptions[[]byte]{
	Shards:        2,
	Codec:         skein.RawCodec{},
	MaxPayloads:   3, // so that there are enough calls to die in
	MaxRetries:    1 << 20,
	MaxRecoveries: 1 << 20,
	Backoff:       func(int) time.Duration { return 50 * time.Millisecond },
	Timeout:       time.Minute,
})

const (
	calledSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	// calledVariable names the URL that a worker of called calls.
	calledVariable = "SKEIN_TEST_CALLED_URL"
)

// lineHandled is a line of a handler in Python: a payload, as id/number.
const lineHandled = "handled"

// calledWorker calls the handlers as skein work does.
func calledWorker() error {
	options := skein.ServerOptions{LeaseTTL: time.Second, PollInterval: 50 * time.Millisecond}
	return serveWithJournal(options, func(journal) skein.Handler {
		secrets, err := webhook.ParseSecrets(calledSecret)
		if err != nil {
			panic(err)
		}
		caller, err := webhook.New(called.Name(), webhook.Options{
			URL: os.Getenv(calledVariable), Secrets: secrets, Lanes: skein.DefaultLanes,
		})
		if err != nil {
			panic(err)
		}
		return called.JobHandler(caller.Handle)
	})
}

// notesAndDies goes before the last line of the guide's Python: the handler notes each payload in the
// journal, and in its call number DIES the process kills itself, before its notes or after them. In
// both cases the call has no answer.
const notesAndDies = `
import random, signal, threading
of_the_page, calls, lock = handle, 0, threading.Lock()

def handle(job):
    global calls
    with lock:
        calls += 1
        dies = calls == int(os.environ["DIES"])
    if dies and random.random() < 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    with open(os.environ["SKEIN_TEST_WORKER_JOURNAL"], "a") as journal:
        for p in job["payloads"]:
            journal.write(f'handled pid={os.getpid()} id="{job["id"]}/{p["payload"]}" token={job["fencing_token"]} '
                          f'recoveries={job["recoveries"]} at={time.time_ns()}\n')
            journal.flush()
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return of_the_page(job)

`

// pythonOfTheGuide returns the handler of the guide that also notes and dies.
func pythonOfTheGuide(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guide/work.md")
	must(t, err)
	block := regexp.MustCompile("(?s)\n```python\n(.*\n)(ThreadingHTTPServer[^\n]*\n)```\n").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no handler in Python")
	}
	return string(block[1]) + notesAndDies + string(block[2])
}

// pythons runs the handler until stop, which returns how often it has killed itself. After most deaths
// it lives on.
func pythons(t *testing.T, j journal, port string, most int) (stop func() (deaths int)) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	program := pythonOfTheGuide(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		deaths := 0
		defer func() { ended <- deaths }()
		for {
			dies := 0
			if deaths < most {
				dies = 1 + rand.IntN(10)
			}
			c := exec.CommandContext(ctx, "python3", "-")
			c.Stdin = strings.NewReader(program)
			c.Env = append(os.Environ(), "PORT="+port, "ORDERS_SECRET="+calledSecret, journalVariable+"="+j.path,
				fmt.Sprint("DIES=", dies))
			said, err := c.CombinedOutput()
			var exit *exec.ExitError
			switch {
			case ctx.Err() != nil:
				return
			case !errors.As(err, &exit) || exit.Exited(): // and was not killed
				t.Errorf("Python: %v: %s", err, said)
				return
			}
			deaths++
		}
	}()
	return func() int {
		cancel()
		return <-ended
	}
}

// Whatever dies, workers in calls and handlers that they call, each pushed payload is handled, and the
// payloads of an id first in their order.
func TestCallsOfAURLHandleAllInOrderDespiteKills(t *testing.T) {
	t.Parallel()
	numbers, kills := tier.Count(20, 300), tier.Count(1, 10)
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, j := newURL(t), newJournal(t)
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			must(t, err)
			_, port, err := net.SplitHostPort(l.Addr().String())
			must(t, err)
			must(t, l.Close())

			stop := pythons(t, j, port, kills)
			worker := func() *process {
				return startProgram(t, os.Args[0], "called", url, j, calledVariable+"=http://localhost:"+port+"/orders")
			}
			p := worker()
			j.await(t, lineReady, p.pid(), 1) // so the queue is declared

			store, ids := kit.Open(t, url), []string{"a", "b", "a.b"}
			client := skein.NewClient(store, skein.ClientOptions{})
			for number := range numbers {
				for _, id := range ids {
					must(t, called.Push(t.Context(), client, id, fmt.Append(nil, number), skein.Score(float64(number))))
				}
				if number%(numbers/kills) == numbers/kills/2 {
					p.kill(t)
					p = worker()
				}
			}

			kit.AwaitCounts(t, store, called.Name(), 0, 0, 0)
			p.interrupt(t)
			if deaths := stop(); deaths != kills {
				t.Errorf("%d handlers killed themselves, want %d", deaths, kills)
			}

			first := map[string][]string{}
			for _, line := range j.read(t) {
				id, number, _ := strings.Cut(line.id, "/")
				if line.what == lineHandled && !slices.Contains(first[id], number) {
					first[id] = append(first[id], number)
				}
			}
			var want []string
			for number := range numbers {
				want = append(want, fmt.Sprint(number))
			}
			for _, id := range ids {
				if diff := cmp.Diff(want, first[id]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", id, diff)
				}
			}
		})
	}
}
