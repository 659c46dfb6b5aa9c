// Package dispatch decides what the lanes of a server run, and what its turns claim for them. It is
// pure: time is an argument, and it has no lock, channel, timer or callback.
//
// # Files
//
//	fairpermits.go  how servers share the permits of a queue
//	pace.go         estimates: how long jobs take, how many have started lately
package dispatch
