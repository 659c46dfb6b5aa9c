package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/ports"
)

// counted is the JSON answer of an action on all.
type counted struct {
	LookedAt int `json:"looked_at"`
	Handled  int
	Total    int
	Earlier  int
	Gone     int
}

// handledSoFar is in a line of progress, as of a revive.
var handledSoFar = regexp.MustCompile(`([0-9,]+) revived, `)

// actor is the built command in an action, with a terminal for its standard error.
type actor struct {
	*testing.T
	command *exec.Cmd
	stdout  bytes.Buffer
	said    strings.Builder
	screen  *os.File
}

// startActor starts the command as a process of its own.
func startActor(t *testing.T, url string, words ...string) *actor {
	t.Helper()
	terminal, other := pseudoTerminal(t, 200)
	program, err := os.Executable()
	must(t, err)
	a := &actor{T: t, screen: other}
	a.command = exec.CommandContext(t.Context(), program, append(words, "--url", url)...)
	a.command.Env = append(os.Environ(), mainVariable+"=1")
	a.command.Stdout, a.command.Stderr = &a.stdout, terminal
	must(t, a.command.Start())
	must(t, terminal.Close())
	return a
}

// until reads the command's output until a progress line has a number of handled entries that is
// large enough.
func (a *actor) until(handled int) {
	a.Helper()
	for part := make([]byte, 4096); ; {
		n, err := a.screen.Read(part)
		a.said.Write(part[:n])
		if lines := handledSoFar.FindAllStringSubmatch(a.said.String(), -1); lines != nil {
			last, _ := strconv.Atoi(strings.ReplaceAll(lines[len(lines)-1][1], ",", ""))
			if last >= handled {
				return
			}
		}

		if err != nil {
			a.Fatalf("no line of progress has %d: %v: %s", handled, err, a.said.String())
		}
	}
}

// end waits for the command's end, and returns its state and its counts, nothing if it was killed.
func (a *actor) end() (*os.ProcessState, counted) {
	a.Helper()
	for part := make([]byte, 4096); ; { // until nobody has the terminal open
		n, err := a.screen.Read(part)
		a.said.Write(part[:n])
		if err != nil {
			break
		}
	}

	if err := a.command.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		a.Fatal(err)
	}

	var r counted
	if a.stdout.Len() > 0 {
		must(a.T, json.Unmarshal(a.stdout.Bytes(), &r))
	}
	a.Logf("%v: %v: %s%s", a.command.Args[1:4], a.command.ProcessState, a.said.String(), a.stdout.String())
	return a.command.ProcessState, r
}

// A process that a signal ends in the midst of a revive has done a part. The call with its printed
// text does the rest, and both report what was done: all together, and nothing twice.
func TestARevivesCountsAreTrueAfterASignal(t *testing.T) {
	const letters, enough = 3000, 300
	stores := storesOfTests()
	for _, store := range []string{"Redis", "Postgres"} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			t.Run(store+"/"+signal.String(), func(t *testing.T) {
				t.Parallel()
				url := stores[store](t)
				importLetters(t, url, letters)
				words := []string{"morgue", "revive", "orders", "--all", "--yes", "-o", "json"}

				// At this rate it would take 10 seconds, and it is ended after one.
				first := startActor(t, url, append(words, "--rate", "300")...)
				first.until(enough)
				must(t, first.command.Process.Signal(signal))
				state, before := first.end()

				texts := goOn.FindAllStringSubmatch(first.said.String(), -1)
				second := startActor(t, url, append(words, "--continue", texts[len(texts)-1][1])...)
				ended, after := second.end()
				if ended.ExitCode() != 0 || after.Total != letters {
					t.Errorf("the second call ended with %v, %+v", ended, after)
				}

				now := after.Handled - after.Earlier
				says := fmt.Sprintf("%s revived now, %d by earlier calls", thousands(now), before.Handled)

				switch signal {
				case syscall.SIGINT: // it has counted all that it did
					if state.ExitCode() != 4 || before.Handled < enough || before.Handled >= letters {
						t.Errorf("the first call ended with %v, %+v", state, before)
					}
					if after.Earlier != before.Handled || after.Handled != letters || after.Gone != 0 {
						t.Errorf("after %+v the second call says %+v", before, after)
					}
				case syscall.SIGKILL: // it could count nothing: the second does not find its letters
					if !state.Sys().(syscall.WaitStatus).Signaled() || before != (counted{}) {
						t.Errorf("the first call ended with %v, %+v", state, before)
					}
					if after.Earlier != 0 || after.Gone < enough || after.Gone >= letters || now+after.Gone != letters {
						t.Errorf("the second call says %+v", after)
					}
					says = fmt.Sprintf("%s revived now, at least 0 by earlier calls", thousands(now))
				}

				if !strings.Contains(second.said.String(), says) {
					t.Errorf("the second call does not say %q: %s", says, second.said.String())
				}
				allRevivedOnce(t, url, letters)
			})
		}
	}
}

// thousands is a number below a million as the command writes it.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// importLetters fills the morgue of a queue.
func importLetters(t *testing.T, url string, letters int) {
	t.Helper()
	var lines strings.Builder
	for n := range letters {
		fmt.Fprintf(&lines, `{"id":"order-%05d","changed_at_us":1500000000000000,"error":"boom","group":"boom","payloads":[{"score":1,"data":"one"}]}`+"\n", n)
	}
	name := filepath.Join(t.TempDir(), "dead.jsonl")
	must(t, os.WriteFile(name, []byte(lines.String()), 0o600))
	if code, said := run(t, url, "morgue import orders "+name+" --shards 5"); code != 0 {
		t.Fatalf("the import ended with %d: %s", code, said)
	}
}

// allRevivedOnce checks that each letter is queued, and that none is dead.
func allRevivedOnce(t *testing.T, url string, letters int) {
	t.Helper()
	b, err := backends.Connect(t.Context(), url)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	stats, err := b.Store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	must(t, err)
	if c := stats[0].Counts; c.Fresh != int64(letters) || c.Dead != 0 {
		t.Errorf("%d jobs are queued and %d dead, want all %d queued", c.Fresh, c.Dead, letters)
	}
}
