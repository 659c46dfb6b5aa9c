package ports

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// validateTexts returns [ErrInvalidRequest] unless all names are valid by [core.Text]: stores that
// keep texts refuse other bytes.
func validateTexts(what string, names ...string) error {
	for _, name := range names {
		if core.Text(name) != name {
			return fmt.Errorf("%w: %s %q, which is not UTF-8 or has NUL; use core.Text", ErrInvalidRequest, what, name)
		}
	}
	return nil
}
