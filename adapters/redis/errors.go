package redis

import (
	"errors"

	"github.com/skeinq/skein/ports"
)

// refusal reports whether an error says that nothing was written.
func refusal(err error) bool {
	for _, sentinel := range []error{ports.ErrUnknownQueue, ports.ErrShardCountMismatch, ports.ErrFull} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}
