package kills_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
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
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, j := newURL(t), newJournal(t)
			callsDespiteKills(t, url, j, tier.Count(20, 300), tier.Count(1, 10), func(handler string) *process {
				return startProgram(t, os.Args[0], "called", url, j, calledVariable+"="+handler)
			})
		})
	}
}

// The same holds for the command, whose leases and waits are longer.
func TestSkeinWorkHandlesAllInOrderDespiteKills(t *testing.T) {
	tier.Long(t, "waits for leases of ten seconds, and for the backoff of calls without an answer")
	t.Parallel()
	dir := t.TempDir()
	program, secrets := filepath.Join(dir, "skein"), filepath.Join(dir, "secrets")
	must(t, os.WriteFile(secrets, []byte(calledSecret), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../../cmd/skein", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build skein: %v\n%s", err, out)
	}

	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, j := newURL(t), newJournal(t)
			callsDespiteKills(t, url, j, 20, 2, func(handler string) *process {
				p := &process{j: j, cmd: exec.CommandContext(t.Context(), program, "work", called.Name(), handler,
					"--url", url, "--secret-file", secrets, "--shards", "2", "--max-payloads", "3", "--listen", "127.0.0.1:0")}
				p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
				must(t, p.cmd.Start())
				return p
			})
		})
	}
}

// handledLines counts the payloads that handlers have noted.
func handledLines(t *testing.T, j journal) (n int) {
	t.Helper()
	for _, line := range j.read(t) {
		if line.what == lineHandled {
			n++
		}
	}
	return n
}

// callsDespiteKills pushes numbers for three ids while workers are killed and handlers kill themselves,
// and checks the ledger. start starts a worker, given the URL of the handler.
func callsDespiteKills(t *testing.T, url string, j journal, numbers, kills int, start func(handler string) *process) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	must(t, l.Close())

	stop, handler := pythons(t, j, port, kills), "http://localhost:"+port+"/orders"
	store, ids := kit.Open(t, url), []string{"a", "b", "a.b"} // which migrates, as the command does not
	worker := start(handler)
	client := skein.NewClient(store, skein.ClientOptions{})
	for number := range numbers {
		before := handledLines(t, j)
		for _, id := range ids {
			must(t, called.Push(t.Context(), client, id, fmt.Append(nil, number), skein.Score(float64(number))))
		}
		if number%(numbers/kills) == numbers/kills/2 {
			// Only a worker that has begun is killed in calls.
			for deadline := time.Now().Add(testservers.Patience); handledLines(t, j) == before; {
				if time.Now().After(deadline) {
					_ = worker.cmd.Process.Kill()
					_ = worker.cmd.Wait()
					t.Fatalf("no payload was handled in %v: %s", testservers.Patience, &worker.out)
				}
				time.Sleep(time.Millisecond) // on a slow machine longer
			}
			worker.kill(t)
			worker = start(handler)
		}
	}

	kit.AwaitCounts(t, store, called.Name(), 0, 0, 0)
	worker.interrupt(t)
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
}
