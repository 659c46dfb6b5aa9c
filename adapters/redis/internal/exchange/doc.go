// Package exchange sends scripts and plain commands to the servers of a Redis client, and returns
// the outcome of each call. A [Link] decides how calls travel, whatever they contain. The store
// decides whether a server is usable, and which keys a queue has.
//
//   - call.go has the road of a healthy call: a command there, and its reply back. Small pushes to a
//     single server go by small.go instead.
//   - run.go sends calls, and sends them again while a server refuses them without running them.
//   - apart.go sends calls to each server of a Cluster separately, so that a hanging one delays no
//     others. masters.go lists these servers, servers.go checks each, and moves.go follows slots.
//   - small.go sends small pushes together, and large.go sends large ones beside the others.
//   - durable.go waits for replicas.
//   - script.go joins the parts of a script, and finds the part that an error is about.
//   - errors.go translates the errors of servers into those of package ports.
//   - silence.go closes connections that have gone silent, so that no later call waits for them.
//   - workers.go has the goroutines of calls, which end when their server answers, not with the
//     context of a caller.
package exchange
