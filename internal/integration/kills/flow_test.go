package kills_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

const (
	flowShards = 8
	flowLanes  = 2
	flowTake   = 10 * time.Millisecond
	// flowBacklog is how many jobs wait at all times. So if a shard's jobs come late, the cause is
	// the nodes.
	flowBacklog = 500
	// flowStart is how long a node takes at most, on a quiet machine, from its start until a job is
	// done.
	flowStart = 100 * time.Millisecond
	// flowShortTTL is the LeaseTTL of nodes that are killed. Others have the default.
	flowShortTTL = 2 * time.Second
)

var flowing = skein.NewQueue[int]("flowing", skein.QueueOptions[int]{Shards: flowShards})

func flowWorker() error {
	return journalWorker(flowing, skein.ServerOptions{Lanes: flowLanes}, workForFlow)
}

func shortFlowWorker() error {
	return journalWorker(flowing, skein.ServerOptions{Lanes: flowLanes, LeaseTTL: flowShortTTL}, workForFlow)
}

func workForFlow() { time.Sleep(flowTake) } // no test counts how much a slow machine does

// flow is jobs that flow through the shards of a queue while nodes come and go.
type flow struct {
	t      *testing.T
	url    string
	store  ports.ShardStore
	client *skein.Client
	j      journal
	// lines are the journal's, read so far, and offset its length.
	lines  []journalLine
	offset int64
	ready  map[int]bool
	// owners are the nodes that began the last job of each shard.
	owners        [flowShards]int
	pushed, ended int
	drains        bool
}

func newFlow(t *testing.T, url string) *flow {
	t.Helper()
	store := kit.Open(t, url)
	return &flow{
		t: t, url: url, store: store, client: skein.NewClient(store, skein.ClientOptions{}),
		j: newJournal(t), ready: map[int]bool{},
	}
}

// until keeps jobs flowing until something is so. It ends the test after Patience.
func (f *flow) until(what string, so func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(5 * time.Millisecond) {
		f.look()
		if so() {
			return
		}
		f.push()
		if time.Now().After(deadline) {
			f.t.Fatalf("not so after %v: %s; the shards' owners are %v", testservers.Patience, what, f.owners)
		}
	}
}

// during keeps jobs flowing for a while.
func (f *flow) during(d time.Duration) {
	f.t.Helper()
	over := time.Now().Add(d)
	f.until("time passes", func() bool { return time.Now().After(over) })
}

// look reads the nodes' output.
func (f *flow) look() {
	f.t.Helper()
	var lines []journalLine
	lines, f.offset = f.j.readFrom(f.t, f.offset)
	f.lines = append(f.lines, lines...)
	for _, l := range lines {
		switch l.what {
		case lineReady:
			f.ready[l.pid] = true
		case lineBegan:
			f.owners[core.ShardOf(l.id, flowShards)] = l.pid
		case lineEnded:
			f.ended++
		}
	}
}

// push fills the backlog, a few jobs in each call.
func (f *flow) push() {
	f.t.Helper()
	for !f.drains && f.pushed-f.ended < flowBacklog {
		var entries []skein.Entry[int]
		for range 2 * flowShards {
			entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("job-", f.pushed), Payload: f.pushed})
			f.pushed++
		}
		if err := flowing.PushMany(f.t.Context(), f.client, entries); err != nil {
			f.t.Fatal(err)
		}
	}
}

// start starts a node and returns at once.
func (f *flow) start(worker string) *process {
	f.t.Helper()
	return f.startProgram(os.Args[0], worker)
}

// startProgram starts a node whose program is this one or another version of it.
func (f *flow) startProgram(program, worker string) *process {
	f.t.Helper()
	return startProgram(f.t, program, worker, f.url, f.j)
}

// startAll starts the given number of nodes. It returns when each has begun a job, and how long
// the first of them took, before there were others, until it had ended one.
func (f *flow) startAll(worker string, count int) (nodes []*process, start time.Duration) {
	f.t.Helper()
	began := time.Now()
	nodes = append(nodes, f.start(worker))
	f.until("a job is done", func() bool { return f.ended > 0 })
	start = time.Since(began) // by which tests of make test-all scale their bounds to a slow machine
	for len(nodes) < count {
		nodes = append(nodes, f.start(worker))
	}
	f.awaitSharing(nodes)
	return nodes, start
}

// awaitReady returns when a node is about to serve.
func (f *flow) awaitReady(p *process) {
	f.t.Helper()
	f.until("the node is ready", func() bool { return f.ready[p.pid()] })
}

// awaitSharing returns when the nodes share the shards, and each has as many as any other.
func (f *flow) awaitSharing(nodes []*process) {
	f.t.Helper()
	var pids []int
	for _, p := range nodes {
		pids = append(pids, p.pid())
	}
	f.until(fmt.Sprintf("%v share the shards", pids), func() bool {
		return !slices.ContainsFunc(nodes, func(p *process) bool { return len(f.ownedBy(p)) != flowShards/len(nodes) })
	})
}

// ownedBy returns the shards whose last job a node began.
func (f *flow) ownedBy(p *process) (shards []int) {
	for shard, pid := range f.owners {
		if pid == p.pid() {
			shards = append(shards, shard)
		}
	}
	return shards
}

// stop ends a node, and returns when it has ended.
func (f *flow) stop(p *process) {
	f.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	f.until("the node has stopped", func() bool { return len(ended) > 0 })
	if err := <-ended; err != nil {
		f.t.Fatalf("the node: %v\n%s", err, &p.out)
	}
}

// finish lets the nodes do all jobs, stops them, and checks that each job was done, in
// executions that did not overlap. It returns the executions of each job.
func (f *flow) finish(nodes []*process) map[string]executions {
	f.t.Helper()
	f.drains = true
	looking := inspect.New(f.store, inspect.Options{})
	var stats []inspect.QueueStats
	f.until("all jobs are done", func() bool {
		var err error
		if stats, err = looking.Stats(f.t.Context(), flowing.Name()); err != nil {
			f.t.Fatal(err)
		}
		return stats[0].Length()+stats[0].Claimed == 0
	})
	for _, p := range nodes {
		p.interrupt(f.t)
	}
	if stats[0].Processed != int64(f.pushed) || stats[0].Dead != 0 {
		f.t.Errorf("of %d jobs %d are done and %d dead", f.pushed, stats[0].Processed, stats[0].Dead)
	}
	f.look()
	all := replay(f.t, f.lines)
	for n := range f.pushed {
		id := fmt.Sprint("job-", n)
		if e := all[id]; e.ended == 0 || e.began != e.ended+e.died {
			f.t.Errorf("%s: %+v", id, e)
		}
	}
	return all
}
