package skein_test

import (
	"context"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/ports"
)

// nowhere takes pushes and keeps nothing.
type nowhere struct{ ports.Producer }

func (nowhere) Declare(context.Context, ports.DeclareRequest) (ports.DeclareReply, error) {
	return ports.DeclareReply{Generation: 1}, nil
}

func (nowhere) Push(context.Context, ports.PushRequest) (ports.PushReply, error) {
	return ports.PushReply{}, nil
}

// An entry of a push allocates nothing, beside what its codec does.
func TestPushManyAllocatesNothingForAnEntry(t *testing.T) {
	client, queue := skein.NewClient(nowhere{}, skein.ClientOptions{}),
		skein.NewQueue("q", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}})
	entries := make([]skein.Entry[[]byte], 100)
	for i := range entries {
		entries[i].ID = "id"
	}
	allocs := testing.AllocsPerRun(100, func() {
		if err := queue.PushMany(t.Context(), client, entries); err != nil {
			t.Error(err)
		}
	})
	if allocs >= 100 {
		t.Errorf("a push of 100 entries allocates %.0f times, want a few", allocs)
	}
}
