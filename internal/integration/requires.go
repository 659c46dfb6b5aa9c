// Package integration has tests of the stores on real servers. Its go.mod also requires what only
// tests of the published modules import: those modules must not, for their users would inherit it.
// The workspace, go.work, gives them to the tests.
package integration
