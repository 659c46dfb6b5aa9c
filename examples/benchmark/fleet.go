package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/skeinq/skein"
)

// fleetSetting is how many servers share how many queues.
type fleetSetting struct {
	nodes, lanes   int // lanes of each node
	queues, shards int // shards of each queue
}

// String returns all four numbers.
func (s fleetSetting) String() string {
	return fmt.Sprintf("%s of %s, %d queues of %s",
		plural(s.nodes, "node"), plural(s.lanes, "lane"), s.queues, plural(s.shards, "shard"))
}

// fleet has a client and several servers that share queues. The servers have default options, and
// connections of their own.
type fleet struct {
	setting fleetSetting
	queues  []*skein.Queue[[]byte]
	client  *skein.Client
	calls   callCounter
	leases  *leaseTally
	nodes   []*fleetNode
	closers []func() error
}

// fleetNode is one server.
type fleetNode struct {
	stop func()
	done chan error
	kill func()
	dead bool
}

// openFleet makes servers, which do not run yet, on an empty database.
func openFleet(ctx context.Context, l *lab, setting fleetSetting) (*fleet, error) {
	if err := l.emptyForSkein(ctx); err != nil {
		return nil, err
	}

	f := &fleet{setting: setting, leases: newLeaseTally(setting)}
	for i := range setting.queues {
		f.queues = append(f.queues, skein.NewQueue(fmt.Sprintf("bench%d", i), skein.QueueOptions[[]byte]{
			Codec:  skein.RawCodec{},
			Shards: setting.shards,
		}))
	}

	store, closer, err := l.openStore(ctx, fleetConnections/setting.nodes)
	if err != nil {
		return nil, err
	}

	f.client, f.closers = skein.NewClient(store, skein.ClientOptions{}), append(f.closers, closer)
	return f, nil
}

// emptyForSkein empties the database, and makes Skein's tables.
func (l *lab) emptyForSkein(ctx context.Context) error {
	if l.postgres != nil {
		return renewed(ctx, l, skeinTables)
	}
	return l.flush(ctx)
}

// start starts all servers at once.
func (f *fleet) start(ctx context.Context, l *lab, handle func([]byte)) error {
	var servers []*skein.Server
	for i := range f.setting.nodes {
		store, closer, err := l.openStore(ctx, fleetConnections/f.setting.nodes)
		if err != nil {
			return err
		}
		f.closers = append(f.closers, closer)

		life, kill := context.WithCancel(ctx)
		level := &slog.LevelVar{}
		level.Set(slog.LevelWarn)
		f.nodes = append(f.nodes, &fleetNode{done: make(chan error, 1), kill: func() {
			level.Set(slog.LevelError + 1) // the records of a killed server are discarded
			kill()
		}})

		servers = append(servers, f.server(i, &nodeStore{wokenStore: store, calls: &f.calls, life: life},
			slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: level})), handle))
	}

	for i, n := range f.nodes {
		ctx, stop := context.WithCancel(ctx)
		n.stop = stop
		go func() { n.done <- servers[i].Run(ctx) }()
	}
	return nil
}

// server makes one server of all queues.
func (f *fleet) server(number int, store *nodeStore, log *slog.Logger, handle func([]byte)) *skein.Server {
	var handlers []skein.Handler
	for _, q := range f.queues {
		handlers = append(handlers, q.Handler(func(_ context.Context, _ string, payloads [][]byte) error {
			for _, p := range payloads {
				handle(p)
			}
			return nil
		}))
	}

	return skein.NewServer(store, skein.ServerOptions{
		Name:     fmt.Sprint("node ", number),
		Lanes:    f.setting.lanes,
		Observer: &leaseWatch{tally: f.leases, node: number},
		Logger:   log,
	}, handlers...)
}

// killOne ends the first node as a crash would.
func (f *fleet) killOne() {
	f.nodes[0].dead = true
	f.leases.bury(0)
	f.nodes[0].kill()
}

// push stores a job in one of the queues.
func (f *fleet) push(ctx context.Context, j job, queue int) error {
	return f.queues[queue%len(f.queues)].Push(ctx, f.client, j.id, j.payload)
}

// close stops all servers at once, and closes their connections.
func (f *fleet) close() error {
	var errs []error

	for _, n := range f.nodes {
		if n.stop != nil {
			n.stop()
		}
	}

	for _, n := range f.nodes {
		if n.stop == nil {
			continue
		}
		if err := <-n.done; !n.dead {
			errs = append(errs, err)
		}
		n.kill()
	}

	for _, closer := range f.closers {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// evenWithin is how long servers may take to share the shards evenly.
const evenWithin = time.Minute

// awaitEven waits until the servers share the shards evenly, and returns the time since when they
// do.
func (f *fleet) awaitEven(ctx context.Context) (since time.Time, err error) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if since, ok := f.leases.even(); ok {
			return since, nil
		}
		switch {
		case ctx.Err() != nil:
			return since, context.Cause(ctx)
		case time.Since(began) > evenWithin:
			return since, fmt.Errorf("the shards are not shared evenly after %v", evenWithin)
		}
	}
}
