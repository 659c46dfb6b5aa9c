// Package prometheus exports Skein's metrics to Prometheus. docs/metrics.md lists them.
//
// [Metrics] is the Observer of a process: give it to the client and the server, and register it.
//
//	metrics, err := prometheus.New(prometheus.Options{Queues: []string{"orders"}})
//	registry.MustRegister(metrics)
//	client := skein.NewClient(store, skein.ClientOptions{Observer: metrics})
//	server := skein.NewServer(store, skein.ServerOptions{Observer: metrics}, handler)
//	metrics.Watch(server.Node)
//
// [Collector] shows what the store holds. Register it in one process of all; where several export the same store, take the max
// of them and never the sum.
//
//	collector, err := prometheus.NewCollector(inspect.New(store, inspect.Options{}), prometheus.CollectorOptions{})
//	registry.MustRegister(collector)
//
// No label has an id, a payload, an error's text, an owner or a node, nor a shard unless it is asked for.
package prometheus
