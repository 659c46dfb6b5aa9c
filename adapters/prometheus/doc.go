// Package prometheus exports Skein's metrics to Prometheus. docs/reference/metrics.md lists them.
//
//	metrics, err := prometheus.New(prometheus.Options{Queues: []string{"orders"}})
//	registry.MustRegister(metrics)
//	client := skein.NewClient(store, skein.ClientOptions{Observer: metrics})
//	server := skein.NewServer(store, skein.ServerOptions{Observer: metrics}, handler)
//	metrics.Watch(server.Node)
//
//	inspector := inspect.New(store, inspect.Options{})
//	collector, err := prometheus.NewCollector(inspector, prometheus.CollectorOptions{})
//	registry.MustRegister(collector)
//
// # Where to begin
//
//   - [Metrics] is the Observer of a process: pass it to clients and servers, and register it.
//     [New] makes one.
//   - [Options] are the queues whose series exist from the start, and the labels.
//   - [Collector] exports what the store holds. Register it in one of the processes. If several
//     processes export the same store, use the max of their values, never the sum.
//
// No label has an id, a payload, an error's text, an owner or a server's name. Only
// Options.PerShard adds a label for the shard.
package prometheus
