// Package guard calls functions of users, so that a panic in one of them harms only that call.
//
// Begin with [Call], and with [PanicError], which is what it returns. [Observer] does the same for
// each method of a user's observer.
package guard
