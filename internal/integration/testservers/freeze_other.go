//go:build !unix

package testservers

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Freeze skips the test, because no process can be made to hang on this system.
func Freeze(t testing.TB, _ *redis.Client) (thaw func()) {
	t.Helper()
	Missing(t, errors.New("only a server that is a process of a Unix machine can be made to hang"))
	return func() {}
}

// FreezeProcess skips the test, because no process can be made to stand still on this system.
func FreezeProcess(t testing.TB, _ int) (thaw func()) {
	t.Helper()
	Missing(t, errors.New("only a process of a Unix machine can be made to stand still"))
	return func() {}
}
