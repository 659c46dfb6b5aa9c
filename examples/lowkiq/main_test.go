package main

import (
	"bytes"
	"log"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/skeintest"
)

// An hour of the application, in virtual time.
func TestEachIDIsDoneOrGivenUp(t *testing.T) {
	const ids = 1000
	var out bytes.Buffer
	d := &dummy{log: log.New(&out, "", 0), ids: ids, delay: 10 * time.Second}
	s := skeintest.New()
	s.Server = d.options()
	if err := d.push(t.Context(), s.Client); err != nil {
		t.Fatal(err)
	}
	events := s.Drain(t, time.Hour, d.handlers()...)

	runs := make(map[string]skeintest.Events)
	count := make(map[skeintest.Outcome]int)
	for i, e := range events {
		key := e.Queue + " " + e.ID
		runs[key] = append(runs[key], e)
		count[e.Outcome]++
		if failed := e.Outcome != skeintest.Done; failed != (i%failEvery == failEvery-1) {
			t.Errorf("call %d: %v", i+1, e)
		}
	}

	if len(runs) != 2*ids {
		t.Errorf("%d jobs ran, want %d", len(runs), 2*ids)
	}
	for key, list := range runs {
		checkRuns(t, key, list)
	}

	if given := strings.Count(out.String(), "gave up on "); given != count[skeintest.Exhausted] || given == 0 {
		t.Errorf("%d jobs were given up, %d of them in the log; want some, and all", count[skeintest.Exhausted], given)
	}

	for line, want := range map[string]int{
		"started ": len(events), "finished ": count[skeintest.Done], "error A": len(events) - count[skeintest.Done],
	} {
		if got := strings.Count("\n"+out.String(), "\n"+line); got != want {
			t.Errorf("%d lines with %q, want %d", got, line, want)
		}
	}
}

// checkRuns checks the executions of one job: on time, retried twice at the most,
// and done or given up in the end.
func checkRuns(t *testing.T, key string, list skeintest.Events) {
	t.Helper()
	if first := list[0].At; first > 10*time.Second {
		t.Errorf("%s began after %v", key, first)
	}
	last := list[len(list)-1].Outcome
	if len(list) > 3 || last != skeintest.Done && last != skeintest.Exhausted ||
		len(list) < 3 && last == skeintest.Exhausted {
		t.Errorf("%s:\n%v", key, list)
	}
}

// The command itself, with its defaults, in a bubble where ten minutes take no time.
func TestTheCommandRunsForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		start := time.Now()
		if err := run(t.Context(), []string{"-for", "10m"}, &out); err != nil {
			t.Fatal(err)
		}

		if took := time.Since(start); took != 10*time.Minute {
			t.Errorf("it ran for %v", took)
		}

		buried := 0
		for _, queue := range []string{"ATestWorker", "ATest2Worker"} {
			report := regexp.MustCompile(
				queue + `: (\d+) done, \d+ failures, 0 to do, 0 to retry, (\d+) in the morgue\n`)
			found := report.FindStringSubmatch(out.String())
			if found == nil {
				t.Fatalf("no report of %s in:\n%s", queue, &out)
			}
			done, _ := strconv.Atoi(found[1])
			dead, _ := strconv.Atoi(found[2])
			if done+dead != 1000 {
				t.Errorf("%s: %d done and %d in the morgue, want 1000 in all", queue, done, dead)
			}
			buried += dead
		}
		if buried == 0 {
			t.Error("nothing is in the morgue")
		}
	})
}

func TestTheCommandRefusesBadFlags(t *testing.T) {
	if err := run(t.Context(), []string{"-for", "ever"}, new(bytes.Buffer)); err == nil {
		t.Error("it ran")
	}
}
