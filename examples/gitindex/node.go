package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/backends"
)

// nodeLeaseTTL is short, so that the shards of a node that was killed are soon another's.
const nodeLeaseTTL = 2 * time.Second

// runNode is the whole command in a process that is a node. It ends when the parent requests it,
// and at once when the parent is gone.
func runNode(in io.Reader, out, stderr io.Writer) int {
	signal.Ignore(os.Interrupt) // Of a terminal, which sends it to the parent as well.
	values := json.NewDecoder(in)
	var s settings
	if err := values.Decode(&s); err != nil {
		fmt.Fprintf(stderr, "gitindex: read the settings of a node: %v\n", err)
		return exitFailed
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	parent := newCaller(out)
	go func() {
		fmt.Fprintf(stderr, "%s ends at once: %v\n", s.Name, parent.receive(values, stop))
		os.Exit(exitFailed)
	}()
	if err := s.serve(ctx, parent.handle); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", s.Name, err)
		return exitFailed
	}
	return 0
}

// serve runs a node's server until ctx ends and it has drained. A node that is stopped before its
// store is open has nothing to drain.
func (s settings) serve(ctx context.Context, handle handler) error {
	store, closeStore, err := backends.Open(ctx, s.Store)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	options := skein.ServerOptions{Name: s.Name, Lanes: s.Lanes, LeaseTTL: nodeLeaseTTL}
	if err := skein.NewServer(store, options, newQueue(s.Queue).Handler(handle)).Run(ctx); err != nil {
		return err
	}
	return closeStore()
}
