package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
)

// ErrInvalidOptions is a server with options that can't be.
var ErrInvalidOptions = errors.New("invalid options")

// checkScheduler refuses a scheduler that is nil or speaks of queues that the node
// does not serve.
func checkScheduler(s core.Scheduler, served map[string]*Queue) error {
	if s == nil {
		return fmt.Errorf("%w: the Scheduler built a nil scheduler", ErrInvalidOptions)
	}
	naming, ok := s.(core.QueueNamer)
	if !ok {
		return nil
	}
	for _, name := range naming.QueueNames() {
		if served[name] == nil {
			return fmt.Errorf("%w: the Scheduler names queue %q, for which the server has no handler; it has one for each of %q",
				ErrInvalidOptions, name, slices.Sorted(maps.Keys(served)))
		}
	}
	return nil
}
