package skeintest_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/skeintest"
)

// fake is a test that notes its failures instead of failing.
type fake struct {
	ctx            context.Context
	errors, fatals []string
}

func newFake(t *testing.T) *fake { return &fake{ctx: t.Context()} }

func (*fake) Helper()                    {}
func (f *fake) Context() context.Context { return f.ctx }
func (*fake) Output() io.Writer          { return io.Discard }

func (f *fake) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fake) Fatalf(format string, args ...any) {
	f.fatals = append(f.fatals, fmt.Sprintf(format, args...))
}

// plain returns a queue of texts that are stored as they are.
func plain(name string, options skein.QueueOptions[[]byte]) *skein.Queue[[]byte] {
	options.Codec = skein.RawCodec{}
	return skein.NewQueue[[]byte](name, options)
}

// push pushes texts for an id, in order.
func push(t *testing.T, s *skeintest.Store, q *skein.Queue[[]byte], id string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := q.Push(t.Context(), s.Client, id, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// always returns a handler that returns the same for every job.
func always(q *skein.Queue[[]byte], err error) skein.Handler {
	return q.Handler(func(context.Context, string, [][]byte) error { return err })
}

// every returns a Backoff that is always the same.
func every(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}
