// Package broken tests the suite itself, and has only tests. Each broken store is the memory store
// with one fault, and the case that names the fault must fail it.
//
//   - stores_test.go lists the broken stores, or joins the lists of other files. Each file that
//     is not named here has the stores of one subject.
//   - hooks_test.go and recorder_test.go have the tools to break a store and to record the
//     failures.
//   - transactor_test.go, severer_test.go and damager_test.go add all optional interfaces to the
//     memory store.
//   - suite_test.go runs the suite on stores that are not broken: memory, the model, and both with
//     calls that fail.
package broken
