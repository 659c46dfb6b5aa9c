package otel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/metrics"
)

// TracingOptions are the options of [Tracing]. The zero value is ready.
type TracingOptions struct {
	// TracerProvider makes the spans. nil means the global one at the time of [NewTracing].
	TracerProvider trace.TracerProvider
	// MaxLinks is the maximum number of pushes that the span of a run links to, those with the
	// lowest scores. 0 means 128, below 0 means no link.
	MaxLinks int
	// OnlySampled makes the span of a run only if a push of its payloads was sampled, and calls the
	// sampler for no other run. It is for processes with the sampler sdktrace.AlwaysSample: the
	// pushers then decide what is traced, a sampled push leads to its run, and other runs cost
	// nothing. Without OnlySampled each run is sampled by itself.
	OnlySampled bool
	// IDs adds the id to the spans of runs with one job. Shards adds the shard to the spans of
	// runs.
	IDs, Shards bool
	// ErrorText returns the text of an error in a span. If it returns "", the span has only the
	// type of the error. nil means the error's own text, truncated to 1,000 bytes. Texts of errors
	// may quote payloads.
	ErrorText func(error) string
}

// Bounds of a span's contents.
const (
	defaultLinks   = 128
	errorTextBytes = 1000
)

// Tracing makes a span for each push of a client and each call of a handler. Make it with
// [NewTracing], and pass its methods to clients and servers as the first middleware. It is safe for
// concurrent use.
//
// The span of a call links to the spans of the pushes of its payloads, also for a retry. For that
// the context of a sampled push is stored as the Meta of payloads without a Meta of their own. It
// takes 55 bytes per payload, and more with a tracestate.
type Tracing struct {
	tracer       trace.Tracer
	options      TracingOptions
	pushes, runs starts
}

// start has the options with which the spans of a queue start, so that a span that is not sampled
// costs little.
type start struct {
	name    string
	options []trace.SpanStartOption
}

// starts are those of an operation, which are made when a queue is first seen.
type starts struct {
	operation, kind string
	options         []trace.SpanStartOption
	// known has a *start by the queue's name.
	known sync.Map
}

// NewTracing returns a Tracing.
func NewTracing(o TracingOptions) *Tracing {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MaxLinks == 0 {
		o.MaxLinks = defaultLinks
	}
	if o.ErrorText == nil {
		o.ErrorText = func(err error) string { return core.CutText(err.Error(), errorTextBytes) }
	}

	schema := trace.WithSchemaURL("https://opentelemetry.io/schemas/" + metrics.Conventions)
	t := &Tracing{tracer: o.TracerProvider.Tracer(scope, schema), options: o}
	t.pushes.operation, t.pushes.kind, t.pushes.options = pushing, sending, []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindProducer),
	}
	t.runs.operation, t.runs.kind, t.runs.options = processing, processing, []trace.SpanStartOption{
		trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindConsumer),
	}
	return t
}

// of returns the options with which the spans of a queue start.
func (s *starts) of(queue string) *start {
	if known, ok := s.known.Load(queue); ok {
		return known.(*start)
	}
	made, _ := s.known.LoadOrStore(queue, &start{
		s.operation + " " + queue,
		append(slices.Clone(s.options), trace.WithAttributes(
			systemKey.String(system), operationKey.String(s.operation), typeKey.String(s.kind), queueKey.String(queue),
		)),
	})
	return made.(*start)
}

// Push is a [skein.PushMiddleware]. It makes a span of kind producer for each push, as a child of
// the caller's span.
func (t *Tracing) Push(next skein.PushFunc) skein.PushFunc {
	return func(ctx context.Context, push *skein.RawPush) (err error) {
		s := t.pushes.of(push.Queue)
		ctx, span := t.tracer.Start(ctx, s.name, s.options...)
		if span.IsRecording() {
			span.SetAttributes(countKey.Int(len(push.Entries)))
		}
		defer func() { t.end(span, err) }()
		if span.SpanContext().IsSampled() { // a span that is not recorded need not be linked to
			mark(push.Entries, metaOf(span.SpanContext()))
		}
		return next(ctx, push)
	}
}

// mark gives payloads without a Meta this one.
func mark(entries []core.Entry, meta []byte) {
	for i := range entries {
		if len(entries[i].Meta) == 0 {
			entries[i].Meta = meta
		}
	}
}

// Run is a [skein.Middleware]. It makes a span of kind consumer for each call of a handler, in a
// trace of its own with links to the pushes. If the handler returns an error other than a snooze or
// an await, the span has that error. Outcomes that are set by Settle are not recorded.
func (t *Tracing) Run(next skein.RunFunc) skein.RunFunc {
	return func(ctx context.Context, batch *skein.RawBatch) (err error) {
		if t.options.OnlySampled && !anySampled(batch) {
			return next(ctx, batch)
		}

		s := t.runs.of(batch.Queue)
		ctx, span := t.tracer.Start(ctx, s.name, s.options...)
		if span.IsRecording() {
			span.SetAttributes(t.attributes(batch)...)
			for _, link := range t.links(batch) {
				span.AddLink(link)
			}
		}

		defer func() { t.end(span, err) }()
		return next(ctx, batch)
	}
}

// anySampled reports whether a push of a payload was sampled.
func anySampled(batch *skein.RawBatch) bool {
	for i := range batch.Jobs {
		for _, payload := range batch.Jobs[i].Payloads {
			if len(payload.Meta) > 0 && contextOf(payload.Meta).IsSampled() {
				return true
			}
		}
	}
	return false
}

func (t *Tracing) attributes(batch *skein.RawBatch) []attribute.KeyValue {
	payloads := 0
	for i := range batch.Jobs {
		payloads += len(batch.Jobs[i].Payloads)
	}

	all := []attribute.KeyValue{countKey.Int(payloads), attribute.Int("skein.jobs", len(batch.Jobs))}
	if t.options.Shards {
		all = append(all, shardKey.String(strconv.Itoa(batch.Shard)))
	}

	if len(batch.Jobs) == 1 {
		all = append(all, attribute.Int("skein.retries", batch.Jobs[0].Retries))
		if t.options.IDs {
			all = append(all, attribute.String("skein.id", batch.Jobs[0].ID))
		}
	}

	return all
}

// links returns one link for each span that pushed payloads of the batch, at most MaxLinks.
func (t *Tracing) links(batch *skein.RawBatch) (links []trace.Link) {
	var seen map[trace.SpanID]bool
	for i := range batch.Jobs {
		for _, payload := range batch.Jobs[i].Payloads {
			if len(links) >= t.options.MaxLinks {
				return links
			}

			pushed := contextOf(payload.Meta)
			if !pushed.IsValid() || seen[pushed.SpanID()] {
				continue
			}

			if seen == nil {
				seen = make(map[trace.SpanID]bool)
			}
			seen[pushed.SpanID()] = true
			links = append(links, trace.Link{SpanContext: pushed})
		}
	}
	return links
}

// end ends a span by an error.
func (t *Tracing) end(span trace.Span, err error) {
	defer span.End()
	if err != nil {
		t.fail(span, err)
	}
}

// fail records a span's error. It is separate from end, so that a span without an error allocates
// nothing for it.
func (t *Tracing) fail(span trace.Span, err error) {
	var snooze *skein.SnoozeError
	var await *skein.AwaitError
	switch {
	case errors.As(err, &await):
		span.SetAttributes(attribute.Bool("skein.awaiting", true))
		return
	case errors.As(err, &snooze):
		span.SetAttributes(attribute.Bool("skein.snoozed", true))
		return
	}
	span.SetAttributes(errorKey.String(errorType(err)))
	span.SetStatus(codes.Error, t.errorText(err))
}

// errorText calls the user's function. A panic of it is no reason to lose a job.
func (t *Tracing) errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return t.options.ErrorText(err)
}

// errorType returns the type of the innermost error. A program has few such types.
func errorType(err error) string {
	var panicked *skein.PanicError
	if errors.As(err, &panicked) {
		return "panic"
	}

	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}

	name := fmt.Sprintf("%T", err)
	if name == "*errors.errorString" || name == "*fmt.wrapErrors" || name == "*errors.joinError" {
		return otherError
	}
	return name
}
