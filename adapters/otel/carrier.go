package otel

import (
	"bytes"
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/skeinq/skein/core"
)

// Fields of W3C Trace Context.
const (
	parentField = "traceparent"
	stateField  = "tracestate"
)

// metaOf returns a span's context as the Meta of a payload: its traceparent and, if there is room,
// a space and its tracestate. It is nil for a context that is not valid.
func metaOf(span trace.SpanContext) []byte {
	fields := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), span), fields)
	parent, state := fields[parentField], fields[stateField]
	if parent == "" {
		return nil
	}
	if state != "" && len(parent)+1+len(state) <= core.MaxMetaBytes {
		parent += " " + state
	}
	return []byte(parent)
}

// contextOf returns the span's context from a Meta that metaOf has made. The context is not valid
// for any other Meta.
func contextOf(meta []byte) trace.SpanContext {
	parent, state, _ := bytes.Cut(meta, []byte(" "))
	fields := propagation.MapCarrier{parentField: string(parent), stateField: string(state)}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), fields))
}
