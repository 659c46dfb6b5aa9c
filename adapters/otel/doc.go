// Package otel gives Skein's metrics and traces to OpenTelemetry. It uses its API alone, so the SDK and the exporter are the program's choice.
// Names follow the semantic conventions, version 1.43.0, whose part for messaging is in development there; docs/metrics.md and docs/traces.md
// list them.
//
//	metrics, err := otel.NewMetrics(otel.MetricsOptions{Queues: []string{"orders"}})
//	tracing := otel.NewTracing(otel.TracingOptions{})
//	client := skein.NewClient(store, skein.ClientOptions{Observer: metrics, Middleware: []skein.PushMiddleware{tracing.Push}})
//	server := skein.NewServer(store, skein.ServerOptions{Observer: metrics, Middleware: []skein.Middleware{tracing.Run}}, handler)
//	metrics.Watch(server.Node)
//
// [StoreMetrics] shows what the store holds: make it in one process of all.
//
// No attribute has a payload, an owner or a node; ids and shards only where they are asked for.
package otel
