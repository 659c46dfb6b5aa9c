package storekit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/ports/storekit"
)

const (
	underWay = 2
	atMost   = 4
	most     = 8
	patience = 10 * time.Millisecond
)

// sharedServer carries out requests, which are numbers, once they are let through. The reply is the
// number.
type sharedServer struct {
	storekit.SharedExchanges[string, int, int]
	t       *testing.T
	through chan struct{} // closed to let all requests through
	// refused are requests that the server refuses in an exchange of several.
	refused map[int]bool
	// lost is the error of all requests of an exchange of several, if it is set.
	lost error

	mu        sync.Mutex
	exchanges [][]int // in the order in which they began
	deadlines []time.Duration
	callers   sync.WaitGroup
}

func newSharedServer(t *testing.T) *sharedServer {
	s := &sharedServer{t: t, through: make(chan struct{})}
	s.Alone, s.Together = s.alone, s.together
	s.UnderWay, s.AtMost, s.Patience, s.Most, s.Bytes = underWay, atMost, patience, most, 1000
	return s
}

func (s *sharedServer) begin(requests ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = append(s.exchanges, slices.Clone(requests))
}

func (s *sharedServer) alone(ctx context.Context, request int) (int, error) {
	s.begin(request)
	select {
	case <-s.through:
		return request, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (s *sharedServer) together(
	ctx context.Context,
	_ string,
	requests []int,
) (outcomes []storekit.SharedOutcome[int]) {
	s.begin(requests...)
	deadline, _ := ctx.Deadline()
	s.mu.Lock()
	s.deadlines = append(s.deadlines, time.Until(deadline))
	s.mu.Unlock()

	<-s.through
	for _, r := range requests {
		outcomes = append(outcomes, storekit.SharedOutcome[int]{Reply: r, Err: s.lost, Refused: s.refused[r]})
	}
	return outcomes
}

// call sends a request in a goroutine, and waits until it is under way or waits. The result is its
// error, once all are let through and callers has been waited for.
func (s *sharedServer) call(ctx context.Context, key string, size, request int) *error {
	result := new(error)
	s.callers.Go(func() {
		reply, err := s.Do(ctx, key, size, request)
		if err == nil && reply != request {
			s.t.Errorf("request %d has the reply %d", request, reply)
		}
		*result = err
	})
	synctest.Wait()
	return result
}

// occupy has the exchanges under way that further requests wait for.
func (s *sharedServer) occupy(key string) {
	for i := range underWay {
		s.call(s.t.Context(), key, 1, 100+i)
	}
}

// end lets all requests through, and returns the exchanges after those of occupy.
func (s *sharedServer) end() [][]int {
	close(s.through)
	s.callers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges[underWay:]
}

func (s *sharedServer) want(exchanges ...[]int) {
	s.t.Helper()
	if got := s.end(); !slices.EqualFunc(got, exchanges, slices.Equal) {
		s.t.Errorf("the exchanges have the requests %v, want %v", got, exchanges)
	}
}

// Each test runs in a bubble, which fails if a goroutine is left.
func shared(t *testing.T, name string, test func(t *testing.T, s *sharedServer)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newSharedServer(t)) })
	})
}

func TestSharedExchanges(t *testing.T) {
	shared(t, "requests go at once and alone while few are under way", func(t *testing.T, s *sharedServer) {
		began := time.Now()
		s.call(t.Context(), "a", 1, 1)
		s.call(t.Context(), "a", 1, 2)
		if len(s.exchanges) != 2 || time.Since(began) > 0 {
			t.Errorf("after %v, %v are under way, want both requests", time.Since(began), s.exchanges)
		}
		s.want()
	})

	shared(t, "requests that wait go together, in their order", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		for i := range 5 {
			s.call(t.Context(), "a", 1, i)
		}
		s.want([]int{0, 1, 2, 3, 4})
	})

	shared(t, "one that waits without company goes alone", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		s.call(t.Context(), "a", 1, 1)
		s.want([]int{1})
		if len(s.deadlines) > 0 {
			t.Error("it was sent as an exchange of several")
		}
	})

	shared(t, "requests of another key neither wait nor join", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		s.call(t.Context(), "a", 1, 1)
		s.call(t.Context(), "a", 1, 2)
		s.call(t.Context(), "b", 1, 3)
		if len(s.exchanges) != underWay+1 {
			t.Errorf("%v are under way, want the request of the other key too", s.exchanges)
		}
		s.want([]int{3}, []int{1, 2})
	})

	shared(t, "an exchange is bounded in requests", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		for i := range most + 3 {
			s.call(t.Context(), "a", 1, i)
		}
		got := s.end()
		slices.SortFunc(got, slices.Compare)
		if len(got) != 2 || len(got[0]) != most || len(got[1]) != 3 {
			t.Errorf("the exchanges have %v, want %d requests and 3", got, most)
		}
	})

	shared(t, "an exchange is bounded in bytes", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		for i := range 4 {
			s.call(t.Context(), "a", 500, i)
		}
		s.call(t.Context(), "a", 2000, 4)
		got := s.end()
		slices.SortFunc(got, slices.Compare)
		if want := [][]int{{0, 1}, {2, 3}, {4}}; !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("the exchanges have %v, want %v", got, want)
		}
	})
}

func TestSharedExchangesOfCallersThatGiveUp(t *testing.T) {
	shared(t, "one that gives up while it waits is not sent", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		brief, giveUp := context.WithCancel(t.Context())
		gone := s.call(brief, "a", 1, 1)
		s.call(t.Context(), "a", 1, 2)
		s.call(t.Context(), "a", 1, 3)
		giveUp()
		synctest.Wait()
		if !errors.Is(*gone, context.Canceled) {
			t.Errorf("it returned %v before its exchange, want the end of its context", *gone)
		}
		s.want([]int{2, 3})
	})

	shared(t, "one that gives up later harms nobody", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		brief, giveUp := context.WithTimeout(t.Context(), 3*patience)
		defer giveUp()
		gone := s.call(brief, "a", 1, 1)
		other := s.call(t.Context(), "a", 1, 2)
		time.Sleep(4 * patience) // the two are under way since patience
		synctest.Wait()
		if !errors.Is(*gone, context.DeadlineExceeded) {
			t.Errorf("it returned %v, want the end of its context", *gone)
		}
		s.want([]int{1, 2})
		if *other != nil {
			t.Errorf("the other request of its exchange returned %v", *other)
		}
	})

	shared(t, "an exchange ends with the last of its callers' deadlines", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
			defer cancel()
			s.call(ctx, "a", 1, i)
		}
		time.Sleep(patience)
		synctest.Wait() // they are under way
		s.call(t.Context(), "a", 1, 3)
		s.call(t.Context(), "a", 1, 4) // without a deadline
		s.want([]int{0, 1, 2}, []int{3, 4})
		if want := []time.Duration{3*time.Second - patience, 30 * time.Second}; !slices.Equal(s.deadlines, want) {
			t.Errorf("the exchanges have %v, want %v", s.deadlines, want)
		}
	})
}

func TestSharedExchangesThatFail(t *testing.T) {
	shared(t, "a refused request is sent alone", func(t *testing.T, s *sharedServer) {
		s.refused = map[int]bool{1: true, 3: true}
		s.occupy("a")
		for i := range 4 {
			if err := s.call(t.Context(), "a", 1, i); *err != nil {
				t.Errorf("request %d returned %v", i, *err)
			}
		}
		got := s.end()
		slices.SortFunc(got, slices.Compare)
		if want := [][]int{{0, 1, 2, 3}, {1}, {3}}; !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("the exchanges have %v, want %v", got, want)
		}
	})

	shared(t, "an unknown outcome reaches all", func(t *testing.T, s *sharedServer) {
		s.lost = errors.New("the connection broke")
		s.occupy("a")
		first, second := s.call(t.Context(), "a", 1, 1), s.call(t.Context(), "a", 1, 2)
		s.want([]int{1, 2})
		if *first != s.lost || *second != s.lost {
			t.Errorf("the callers got %v and %v, want %v", *first, *second, s.lost)
		}
	})

	shared(t, "exchanges that hang don't delay others for longer than Patience", func(t *testing.T, s *sharedServer) {
		s.occupy("a")
		for i := range atMost { // each waits for patience, but the last ones for an end
			s.call(t.Context(), "a", 1, i)
			time.Sleep(patience)
			synctest.Wait()
			if want := min(underWay+i+1, atMost); len(s.exchanges) != want {
				t.Errorf("%d exchanges are under way, want %d", len(s.exchanges), want)
			}
		}
		s.want([]int{0}, []int{1}, []int{2, 3})
	})
}
