// Package logs keeps a log short and harmless. [Sums], [Rate] and [Once] choose which of many
// events to write. [New] makes a logger whose handler can't stop its callers by a panic. Time is
// always an argument, and the package starts no goroutine.
package logs
