package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
)

// checkScheduler refuses a scheduler that is nil or speaks of queues that the node
// does not serve.
func checkScheduler(s core.Scheduler, served map[string]*Queue) error {
	if s == nil {
		return fmt.Errorf("%w: the Scheduler built a nil scheduler", core.ErrInvalidOptions)
	}
	naming, ok := s.(core.QueueNamer)
	if !ok {
		return nil
	}
	for _, name := range naming.QueueNames() {
		if served[name] == nil {
			return fmt.Errorf("%w: the Scheduler names queue %q, for which the server has no handler; it has one for each of %q",
				core.ErrInvalidOptions, name, slices.Sorted(maps.Keys(served)))
		}
	}
	return nil
}
