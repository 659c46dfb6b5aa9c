// Package otel exports Skein's metrics and traces to OpenTelemetry. It uses only OpenTelemetry's
// API, so the program chooses the SDK and the exporter. Names follow the semantic conventions,
// version 1.43.0, whose part for messaging is still in development. docs/reference/metrics.md and
// docs/reference/traces.md list the names.
//
//	metrics, err := otel.NewMetrics(otel.MetricsOptions{Queues: []string{"orders"}})
//	tracing := otel.NewTracing(otel.TracingOptions{})
//	client := skein.NewClient(store, skein.ClientOptions{
//		Observer: metrics, Middleware: []skein.PushMiddleware{tracing.Push},
//	})
//	server := skein.NewServer(store, skein.ServerOptions{
//		Observer: metrics, Middleware: []skein.Middleware{tracing.Run},
//	}, handler)
//	metrics.Watch(server.Node)
//
// # Where to begin
//
//   - [Metrics] is the Observer of a process; [NewMetrics] makes one.
//   - [StoreMetrics] exports what the store holds; make it in one of the processes, with
//     [NewStoreMetrics].
//   - [Tracing] is the middleware for spans of pushes and handlers; [NewTracing] makes one.
//
// No attribute has a payload, an owner or a server's name. Only the options of this package add ids
// and shards.
package otel
