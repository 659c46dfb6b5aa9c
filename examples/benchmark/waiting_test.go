package main

import (
	"context"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeSystem hands jobs that it is given to one handler at once.
type fakeSystem struct {
	mu     sync.Mutex
	queued []job
	twice  bool // it hands each out twice
	loses  bool // it forgets one when it is stopped
}

func (s *fakeSystem) push(_ context.Context, j job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued = append(s.queued, j)
	return nil
}

func (s *fakeSystem) fill(ctx context.Context, jobs []job) error {
	for _, j := range jobs {
		_ = s.push(ctx, j)
	}
	return nil
}

func (s *fakeSystem) left(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.queued)), nil
}

func (s *fakeSystem) next() []job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queued) == 0 {
		return nil
	}
	j := s.queued[0]
	s.queued = s.queued[1:]
	if s.twice {
		return []job{j, j}
	}
	return []job{j}
}

func (s *fakeSystem) serve(ctx context.Context, handle func([]byte)) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})

	go func() {
		defer close(done)
		for ctx.Err() == nil {
			jobs := s.next()
			for _, j := range jobs {
				handle(j.payload)
			}
			if len(jobs) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()

	return func() error {
		cancel()
		<-done
		if s.loses {
			s.next()
		}
		return nil
	}, nil
}

// ioOf measures io of a system that has one worker.
func ioOf(t *testing.T, s system) ([]reading, error) {
	one := ioTest{name: "fake", setting: "1 at once", most: handlersAtOnce(1),
		open: func(context.Context, *lab) (system, error) { return s, nil }}
	return one.measure(t.Context(), &lab{jobs: 200_000, log: io.Discard})
}

func TestIOCountsFromTheFirstStartToTheLastEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSystem{}
		readings, err := ioOf(t, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := readings[0].value; math.Abs(got-100) > 0.001 {
			t.Errorf("one worker that waits 10 ms has done %v jobs/s", got)
		}
		if left, _ := s.left(t.Context()); left == 0 {
			t.Error("the backlog was too small")
		}
	})
}

func TestIOFails(t *testing.T) {
	tests := []struct {
		name   string
		system *fakeSystem
		want   string
	}{
		{"a job that comes twice", &fakeSystem{twice: true}, "job 0 was handled twice"},
		{"a job that is lost", &fakeSystem{loses: true}, "so that the store must have the others"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if _, err := ioOf(t, tt.system); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
			})
		})
	}
}

func TestMixedIsPushedAtAFixedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSystem{}
		m := newMixed(time.Second)
		if err := m.push(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(m.base); took < 990*time.Millisecond || took > 1010*time.Millisecond {
			t.Errorf("the jobs of a second took %v", took)
		}
		if left, _ := s.left(t.Context()); left != int64(len(m.jobs)) || left < 4000 || left > 4050 {
			t.Errorf("%d of %d jobs were pushed", left, len(m.jobs))
		}
	})
}

func TestMixedCountsWhatHasNotStarted(t *testing.T) {
	m := newMixed(mixedAtLeast)
	l := &lab{log: io.Discard}
	if _, err := m.readings(l, reading{}, cpuPerJob{}); err == nil {
		t.Error("no error although nothing has started")
	}

	m.starts[0].Store(int64(time.Millisecond))
	m.starts[1].Store(int64(2 * time.Millisecond))
	m.over = time.Minute
	readings, err := m.readings(l, reading{}, cpuPerJob{})
	if err != nil {
		t.Fatal(err)
	}
	if p50 := readings[1].value; p50 < 59_000 || p50 > 60_000 {
		t.Errorf("jobs that wait for a minute have waited %v ms", p50)
	}
}

func TestOneInAHundredOfMixedIsLong(t *testing.T) {
	var long int
	m := newMixed(8 * time.Second)
	for _, l := range m.long {
		if l {
			long++
		}
	}
	if share := float64(long) / float64(len(m.long)); share < 0.009 || share > 0.011 {
		t.Errorf("%d of %d are", long, len(m.long))
	}
}

func TestMostOfRiver(t *testing.T) {
	for setting, want := range map[riverSetting]int{riverDefaults: 1_000, riverBench: 200_000} {
		if got := setting.most(); got != want {
			t.Errorf("%v: got %d, want %d", setting, got, want)
		}
	}
}

// A reader that learns that all jobs have come sees when each has started.
func TestWaitingNotesTheStartBeforeItSaysThatAllHaveCome(t *testing.T) {
	j := newJob(3)
	for range 20_000 {
		w := newWaiting([]job{j}, 3, func(int) time.Duration { return 0 })
		go w.handle(j.payload)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		if first, last := w.startsWithin(); first == 0 || last == 0 {
			t.Fatalf("all have come, and the first has started at %v, the last at %v", first, last)
		}
	}
}
