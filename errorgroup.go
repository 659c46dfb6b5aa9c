package skein

import (
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/internal/errorgroup"
)

// errorGroup returns the group of an error, given its text.
func (s *Server) errorGroup(err error, text string) string {
	if hook := s.options.ErrorGroup; hook != nil {
		group := ""
		failed := guard.Goroutine(func() error {
			group = hook(err)
			return nil
		})
		if failed == nil && group != "" {
			return core.GroupName(group)
		}
		if failed != nil && s.mishaps.Pass(time.Now(), "ErrorGroup") {
			s.options.Logger.Error("ErrorGroup panicked; the error has its default group", "error", failed)
		}
	}

	if s.options.ErrorCodec.Encode != nil {
		text = "" // a text that is stored encrypted must not stand beside it in plain text
	}

	group := errorgroup.Of(fmt.Sprintf("%T", err), text) // if its methods panic
	_ = guard.Goroutine(func() error {
		group = defaultGroup(err, text)
		return nil
	})

	return group
}

// defaultGroup returns the group of an error by its kind and its text. It panics if a method of
// the error does.
func defaultGroup(err error, text string) string {
	var p *PanicError
	if errors.As(err, &p) {
		return errorgroup.OfPanic(p.Function())
	}
	return errorgroup.Of(fmt.Sprintf("%T", innermost(err)), text)
}

// innermost returns the error that others wrap, the first of several.
func innermost(err error) error {
	for {
		var inner error
		switch w := err.(type) {
		case interface{ Unwrap() error }:
			inner = w.Unwrap()
		case interface{ Unwrap() []error }:
			if all := w.Unwrap(); len(all) > 0 {
				inner = all[0]
			}
		}

		if inner == nil {
			return err
		}
		err = inner
	}
}
