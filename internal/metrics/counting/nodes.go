package counting

import (
	"slices"
	"sync"

	"github.com/skeinq/skein/ports"
)

// Nodes has the metrics of the servers of a process. Their values are added up. The zero value has
// no servers. It is safe for concurrent use.
type Nodes struct {
	mu  sync.Mutex
	all []func() ports.Node
}

// Watch adds a server. node is its method Node.
func (n *Nodes) Watch(node func() ports.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, node)
}

// Each calls put for each value, with the name of a metric of the table and the values of its
// labels. The given queues have values even if no server has them. Without servers put is not
// called.
func (n *Nodes) Each(queues []string, put func(name string, v float64, labels ...string)) {
	n.mu.Lock()
	all := slices.Clone(n.all)
	n.mu.Unlock()
	if len(all) == 0 {
		return
	}

	var lanes, busy int
	sums := make(map[string]ports.QueueStatus)
	for _, name := range queues {
		sums[name] = ports.QueueStatus{}
	}

	for _, node := range all {
		one := node()
		lanes, busy = lanes+one.Lanes, busy+one.Status.Busy
		for _, q := range one.Status.Queues {
			sum := sums[q.Queue]
			sum.Running, sum.Claimed, sum.Shards = sum.Running+q.Running, sum.Claimed+q.Claimed, sum.Shards+q.Shards
			sums[q.Queue] = sum
		}
	}

	put("skein_lanes", float64(lanes))
	put("skein_lanes_busy", float64(busy))
	for name, q := range sums {
		put("skein_jobs_running", float64(q.Running), name)
		put("skein_jobs_buffered", float64(q.Claimed), name)
		put("skein_leases_held", float64(q.Shards), name)
	}
}
