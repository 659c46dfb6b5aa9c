package ports

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// validateTexts returns [ErrInvalidRequest] unless [core.Text] leaves each name unchanged. Some
// stores refuse other bytes.
func validateTexts(what string, names ...string) error {
	for _, name := range names {
		if core.Text(name) != name {
			return fmt.Errorf("%w: %s %q is not UTF-8 or has NUL; pass it through core.Text",
				ErrInvalidRequest, what, name)
		}
	}
	return nil
}
