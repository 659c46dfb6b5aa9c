// Package logs is what keeps a log short and harmless: [Sums] and [Rate] say which of many events to write, [New]
// makes a logger whose handler can't end the work by a panic. Time is an argument everywhere; there is no goroutine.
package logs
