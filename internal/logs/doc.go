// Package logs keeps a log short and harmless: [Sums] and [Rate] choose which of many events to
// write, and [New] makes a logger whose handler can't end the work by a panic. Time is an argument
// everywhere; the package starts no goroutine.
package logs
