package skein_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// A queue comes and goes while the server runs.
func ExampleServer_AddHandler() {
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{})
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	server := skein.NewServer(store, skein.ServerOptions{Logger: quiet},
		orders.Each(func(_ context.Context, _, _ string) error { return nil }))

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()

	sent := make(chan string)
	handler := mails.Each(func(_ context.Context, id, _ string) error {
		sent <- id
		return nil
	})
	for server.AddHandler(handler) != nil { // until Run works
		time.Sleep(time.Millisecond)
	}
	if err := mails.Push(ctx, client, "ann@example.com", "hello"); err != nil {
		fmt.Println(err)
	}
	fmt.Println("sent to", <-sent)
	if err := server.RemoveQueue(ctx, "mails"); err != nil {
		fmt.Println(err)
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// sent to ann@example.com
	// <nil>
}

func TestLanesOfARunningServerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
		for i := range 200 {
			push(t, store, queue, fmt.Sprint(i), "x")
		}

		var running, most atomic.Int64
		h := queue.Handler(func(context.Context, string, []string) error {
			now := running.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		})

		server := skein.NewServer(store, skein.ServerOptions{Lanes: 2, Logger: quiet}, h)
		run(t, server, func() {
			time.Sleep(1500 * time.Millisecond)
			if err := server.SetLanes(7); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		})

		if most.Load() != 7 {
			t.Errorf("%d jobs ran at once at most, want 7", most.Load())
		}
	})
}

func TestWhatAServerRefusesToChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		handler := func(name string) skein.Handler {
			return skein.NewQueue(name, skein.QueueOptions[string]{}).
				Handler(func(context.Context, string, []string) error { return nil })
		}
		invalid := skein.NewQueue("no\x00name", skein.QueueOptions[string]{}).
			Handler(func(context.Context, string, []string) error { return nil })
		o := skein.ServerOptions{Logger: quiet, Scheduler: skein.StrictBy("a", "b")}
		server := skein.NewServer(store, o, handler("a"), handler("b"))

		want := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}

		want("a queue before Run", server.AddHandler(handler("c")), skein.ErrInvalidOptions)
		want("lanes before Run", server.SetLanes(3), skein.ErrInvalidOptions)
		run(t, server, func() {
			time.Sleep(time.Second)
			want("an empty handler", server.AddHandler(skein.Handler{}), skein.ErrInvalidOptions)
			want("an invalid queue", server.AddHandler(invalid), skein.ErrInvalidQueue)
			want("a queue twice", server.AddHandler(handler("a")), skein.ErrInvalidOptions)
			want("a queue that the scheduler names", server.RemoveQueue(t.Context(), "b"), skein.ErrInvalidOptions)
			want("no lanes", server.SetLanes(0), skein.ErrInvalidOptions)
			want("a queue more", server.AddHandler(handler("c")), nil)
			want("and none more", server.RemoveQueue(t.Context(), "c"), nil)
		})

		want("a queue after Run", server.RemoveQueue(t.Context(), "a"), skein.ErrInvalidOptions)
	})
}

// Node returns the server's status, while it runs.
func TestNodeOfARunningServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		queue := skein.NewQueue("orders", skein.QueueOptions[string]{Shards: 4})
		for i := range 7 {
			push(t, store, queue, fmt.Sprint(i), "x")
		}

		server := skein.NewServer(store, skein.ServerOptions{Logger: quiet, Lanes: 3, Name: "here"},
			queue.Each(func(context.Context, string, string) error {
				time.Sleep(time.Hour)
				return nil
			}))

		if n := server.Node(); n.Name != "" || n.Lanes != 0 {
			t.Errorf("before Run the node is %+v", n)
		}

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Run(ctx) }()
		time.Sleep(time.Minute)

		n := server.Node()
		if n.Name != "here" || n.Lanes != 3 || n.Status.Busy != 3 || n.Status.Running != 3 || n.Status.Shards != 4 ||
			len(n.Status.Queues) != 1 || n.Status.Queues[0].Shards != 4 {
			t.Errorf("the node is %+v, want three busy lanes and four leases", n)
		}

		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := server.Node(); n.Status.Busy != 0 || n.Status.Shards != 0 {
			t.Errorf("after Run the node is %+v", n)
		}
	})
}
