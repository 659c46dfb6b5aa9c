package kills_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/internal/integration/testservers"
)

// journalVariable names the file of a process's journal.
const journalVariable = "SKEIN_TEST_WORKER_JOURNAL"

// The kinds of a journal's lines.
const (
	lineReady  = "ready"  // of a server, before it claims
	lineBegan  = "began"  // of a handler
	lineEnded  = "ended"  // of a handler
	lineDied   = "died"   // of a process, by the one that has waited for it
	lineTick   = "tick"   // of a handler that has the payload of a tick; id is the text of a tickRun
	lineTook   = "took"   // of a server that was granted slots; see noteGrants
	lineRead   = "read"   // of a server that has read the settings of its queue; token is their version
	lineTells  = "tells"  // of a server that has announced itself; token is the version of the settings it follows
	lineWaited = "waited" // of a Wait that has returned; token is the payload that it waited for
	lineSet    = "set"    // of a test that has changed settings; token is their version
)

// journal is a file that several processes append to. Written lines survive the death of their
// process.
type journal struct{ path string }

func newJournal(t *testing.T) journal {
	return journal{t.TempDir() + "/journal"}
}

// journalLine is one line of a journal.
type journalLine struct {
	what       string
	pid        int
	id         string
	token      int64
	recoveries int
	at         time.Time
}

const journalFormat = "%s pid=%d id=%q token=%d recoveries=%d at=%d\n"

// write appends a line with the present time. If that fails the process ends, since its later
// events would not be known.
func (j journal) write(l journalLine) {
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, journalFormat, l.what, l.pid, l.id, l.token, l.recoveries, time.Now().UnixNano())
		_ = file.Close()
	}
	if err != nil {
		panic(err)
	}
}

// read returns the lines so far.
func (j journal) read(t *testing.T) []journalLine {
	t.Helper()
	text, err := os.ReadFile(j.path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return parseJournal(t, string(text))
}

// readFrom returns the whole lines from an offset on, and the offset behind them.
func (j journal) readFrom(t *testing.T, offset int64) (lines []journalLine, end int64) {
	t.Helper()
	file, err := os.Open(j.path)
	if os.IsNotExist(err) {
		return nil, offset
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, offset, math.MaxInt64-offset))
	if err != nil {
		t.Fatal(err)
	}
	whole := string(text[:bytes.LastIndexByte(text, '\n')+1])
	return parseJournal(t, whole), offset + int64(len(whole))
}

func parseJournal(t *testing.T, text string) (lines []journalLine) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l journalLine
		var at int64
		if _, err := fmt.Sscanf(line, journalFormat, &l.what, &l.pid, &l.id, &l.token, &l.recoveries, &at); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		l.at = time.Unix(0, at)
		lines = append(lines, l)
	}
	return lines
}

// await waits until a process has written the given number of lines of a kind. It ends the test
// after Patience.
func (j journal) await(t *testing.T, what string, pid, count int) {
	t.Helper()
	j.awaitOr(t, what, what, pid, count)
}

// awaitOr is await that also returns once the process has written a line of the kind last.
func (j journal) awaitOr(t *testing.T, last, what string, pid, count int) {
	t.Helper()
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(j.path) // there is none before the first line
		lines := func(kind string) int { return strings.Count(string(text), fmt.Sprintf("%s pid=%d ", kind, pid)) }
		have := lines(what)
		if have >= count || last != what && lines(last) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d: %d of %d lines %q after %v", pid, have, count, what, testservers.Patience)
		}
	}
}

// executions counts the executions of one id.
type executions struct {
	began, ended int
	// died is how many ended by the death of their process.
	died int
	// recoveries are the recoveries that the handlers saw, in order.
	recoveries []int
}

// replay returns the executions of each id. It reports those of one id that overlap, and a
// token that is not larger than that of an execution whose process died.
func replay(t *testing.T, lines []journalLine) map[string]executions {
	t.Helper()
	all, running, least := map[string]executions{}, map[string]journalLine{}, map[string]int64{}
	for _, l := range lines {
		e := all[l.id]
		switch l.what {
		case lineBegan:
			if other, ok := running[l.id]; ok {
				t.Errorf("%s: two executions overlap:\n%+v\n%+v", l.id, other, l)
			}
			if l.token < least[l.id] {
				t.Errorf("%s: token %d, though the execution before had %d", l.id, l.token, least[l.id])
			}
			e.began++
			e.recoveries = append(e.recoveries, l.recoveries)
			running[l.id], least[l.id] = l, l.token
		case lineEnded:
			e.ended++
			delete(running, l.id)
		case lineDied:
			for id, other := range running {
				if other.pid == l.pid {
					dead := all[id]
					dead.died++
					all[id] = dead
					least[id] = other.token + 1
					delete(running, id)
				}
			}
			continue
		default:
			continue
		}
		all[l.id] = e
	}
	return all
}

// runningOf returns the ids whose handlers a process had under way when it died, or has.
func runningOf(lines []journalLine, pid int) []string {
	var ids []string
	for _, l := range lines {
		if l.pid != pid {
			continue
		}
		switch l.what {
		case lineBegan:
			ids = append(ids, l.id)
		case lineEnded:
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == l.id })
		}
	}
	return ids
}
