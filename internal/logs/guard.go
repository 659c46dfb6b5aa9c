package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
)

// New returns the logger of a part of the library: each record has lib=skein, and a panic of the
// handler loses the record and nothing else. A nil logger means [slog.Default]. If the handler
// blocks, the caller blocks too.
func New(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		logger = slog.Default()
	}
	h := logger.Handler()
	if _, guarded := h.(guard); guarded {
		return logger
	}
	return slog.New(guard{h, &said{to: os.Stderr}}).With("lib", "skein")
}

// guard is a handler that does not panic.
type guard struct {
	slog.Handler
	said *said
}

// said reports once that the handler has panicked. It writes to standard error, because the log
// does not work.
type said struct {
	once sync.Once
	to   io.Writer
}

func (s *said) recover() {
	if v := recover(); v != nil {
		s.once.Do(func() {
			_, _ = fmt.Fprintf(
				s.to,
				"skein: the slog.Handler of the log panicked, and a record is lost; repair the handler; "+
					"further panics are not reported: %v\n",
				v,
			)
		})
	}
}

func (g guard) Enabled(ctx context.Context, level slog.Level) bool {
	defer g.said.recover()
	return g.Handler.Enabled(ctx, level)
}

func (g guard) Handle(ctx context.Context, r slog.Record) error {
	defer g.said.recover()
	return g.Handler.Handle(ctx, r)
}

func (g guard) WithAttrs(attrs []slog.Attr) (h slog.Handler) {
	h = g
	defer g.said.recover()
	return guard{g.Handler.WithAttrs(attrs), g.said}
}

func (g guard) WithGroup(name string) (h slog.Handler) {
	h = g
	defer g.said.recover()
	return guard{g.Handler.WithGroup(name), g.said}
}
