// Package integration has the tests on real servers that run on every store. Tests of one store and
// of processes that end are in the rooms below: redis, cluster, postgres, kills. The package kit
// has what they share, and testservers starts the servers.
//
// The go.mod also requires, by requires_test.go, what only tests of the published modules import:
// those modules must not, for their users would inherit it. The workspace, go.work, gives them to
// the tests.
package integration
