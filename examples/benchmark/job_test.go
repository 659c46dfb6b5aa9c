package main

import (
	"fmt"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
)

func TestJobsAreAsStated(t *testing.T) {
	ids := map[string]bool{}
	for i, j := range newJobs(1000) {
		if len(j.id) != 12 || len(j.payload) != 100 {
			t.Fatalf("job %d has an id of %d bytes and a payload of %d", i, len(j.id), len(j.payload))
		}
		if n, err := number(j.payload); n != i || err != nil {
			t.Fatalf("job %d's payload is of job %d: %v", i, n, err)
		}
		ids[j.id] = true
	}
	if len(ids) != 1000 {
		t.Errorf("1000 jobs have %d ids", len(ids))
	}
}

func TestHotJobsShareAShard(t *testing.T) {
	jobs := newHotJobs(100)
	if len(jobs) != 100 {
		t.Fatalf("got %d jobs", len(jobs))
	}
	for _, j := range jobs {
		if shard := core.ShardOf(j.id, skein.DefaultShards); shard != 0 {
			t.Fatalf("%s is in shard %d", j.id, shard)
		}
	}
}

func TestJobsInEachShard(t *testing.T) {
	have := map[int]bool{}
	for _, j := range jobsInEach(1000) {
		have[core.ShardOf(j.id, 1000)] = true
	}
	if len(have) != 1000 {
		t.Errorf("%d of 1000 shards have a job", len(have))
	}
	if n, err := number(newJob(startHighest).payload); n != startHighest || err != nil {
		t.Errorf("the highest number comes back as %d, %v", n, err)
	}
}

func TestTally(t *testing.T) {
	payloads := func(numbers ...int) [][]byte {
		var all [][]byte
		for _, n := range numbers {
			all = append(all, newJob(n).payload)
		}
		return all
	}

	tests := []struct {
		name  string
		taken [][]byte
		want  string
	}{
		{"each once, in any order", payloads(2, 0, 1), "nil"},
		{"one is missing", payloads(0, 2), "waits"},
		{"one comes twice", payloads(0, 0, 1), "job 0 was handled twice"},
		{"one was not pushed", payloads(0, 3), "job 3 was handled, but not pushed"},
		{"one is cut", [][]byte{[]byte("x")}, "a payload has 1 bytes, not 100"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tally := newTally(newJobs(3))
			for _, p := range tt.taken {
				tally.take(p)
			}
			if got := outcome(tally); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTallyOfLaterJobs(t *testing.T) {
	for _, n := range []int{9, 12} {
		tally := newTally(jobsFrom(10, 2))
		tally.take(newJob(n).payload)
		if got, want := outcome(tally), fmt.Sprintf("job %d was handled, but not pushed", n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	tally := newTally(jobsFrom(10, 2))
	tally.take(newJob(11).payload)
	tally.take(newJob(10).payload)
	if got := outcome(tally); got != "nil" {
		t.Errorf("got %s", got)
	}
}

// outcome returns a tally's present state.
func outcome(t *tally) string {
	select {
	case err := <-t.done:
		if err != nil {
			return err.Error()
		}
		return "nil"
	default:
		return "waits"
	}
}
