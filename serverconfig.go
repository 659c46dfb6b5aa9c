package skein

import (
	"cmp"
	"crypto/rand"
	"os"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// config returns the server's options for the engine.
func (s *Server) config() engine.Config {
	o := &s.options
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}

	c := engine.Config{
		Owner:           rand.Text(),
		Node:            core.Text(cmp.Or(o.Name, host)),
		Version:         core.Text(cmp.Or(o.Version, mainVersion())),
		Host:            core.Text(host),
		PID:             os.Getpid(),
		Lanes:           o.Lanes,
		PollInterval:    o.PollInterval,
		LeaseTTL:        o.LeaseTTL,
		ShutdownTimeout: o.ShutdownTimeout,
		Prefetch:        max(0, o.Prefetch),
		RecoverOrphans:  o.RecoverOrphans,
		Splitter:        o.Splitter,
		Scheduler:       o.Scheduler,
		Logger:          o.Logger,
		Observer:        o.Observer,
		Fatal:           o.OnFatal,
		Buried:          buriedHook(o.OnBuried, o.ErrorCodec),
		Jitter:          o.Jitter,
	}

	for i, h := range s.handlers {
		c.Queues = append(c.Queues, s.queue(h, s.runs[i]))
	}

	return c
}

// queue returns a handler's queue for the engine, with the functions that depend on the server's
// options.
func (s *Server) queue(h Handler, run runBatch) *engine.Queue {
	o := &s.options
	q := h.serve()
	q.Run = run
	q.Text = s.errorText
	q.Outcome = func(err error) core.Outcome { return outcomeOf(err, q.Text) }
	q.Stored = o.ErrorCodec.decode
	return q
}

// errorText returns the text of an error as it is stored, and its group.
func (s *Server) errorText(err error) (stored, group string) {
	text := errorText(err, s.options.FormatError)
	stored, failed := s.options.ErrorCodec.encode(text)
	if failed != nil && s.mishaps.Pass(time.Now(), "Encode") {
		s.options.Logger.Error("ErrorCodec.Encode panicked; the error's text is stored as it is", "error", failed)
	}
	return stored, s.errorGroup(err, text)
}
