package engine

import "context"

type jitterKey struct{}

// WithJitter is a context whose RunDue draws its jitter from the given function
// instead of Config.Jitter. It is for package skeintest: its users configure
// servers, and retries must come at times that a test can name.
func WithJitter(ctx context.Context, jitter func() int) context.Context {
	return context.WithValue(ctx, jitterKey{}, jitter)
}

// takeJitter heeds WithJitter.
func (e *Engine) takeJitter(ctx context.Context) {
	if jitter, ok := ctx.Value(jitterKey{}).(func() int); ok {
		e.cfg.Jitter = jitter
	}
}
