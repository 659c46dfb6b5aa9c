package otel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/otel"
)

// shop is a store whose client and server are traced.
type shop struct {
	t        *testing.T
	spans    *tracetest.InMemoryExporter
	provider *sdk.TracerProvider
	tracing  *otel.Tracing
	store    skein.Store
	queue    *skein.Queue[[]byte]
	client   *skein.Client
}

func newShop(t *testing.T, o otel.TracingOptions) *shop {
	t.Helper()
	s := &shop{t: t, spans: tracetest.NewInMemoryExporter(), store: memory.New(memory.Options{})}
	s.provider = sdk.NewTracerProvider(sdk.WithSyncer(s.spans))
	o.TracerProvider = s.provider
	s.tracing = otel.NewTracing(o)
	s.queue = skein.NewQueue("orders", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}})
	s.client = skein.NewClient(s.store, skein.ClientOptions{Middleware: []skein.PushMiddleware{s.tracing.Push}})
	return s
}

func (s *shop) push(ctx context.Context, id, payload string, options ...skein.PushOption) {
	s.t.Helper()
	if err := s.queue.Push(ctx, s.client, id, []byte(payload), options...); err != nil {
		s.t.Fatal(err)
	}
}

// run handles due jobs.
func (s *shop) run(h func(ctx context.Context, id string, payloads [][]byte) error) {
	s.t.Helper()
	server := skein.NewServer(s.store, skein.ServerOptions{
		Logger: slog.New(slog.DiscardHandler), Middleware: []skein.Middleware{s.tracing.Run},
	}, s.queue.Handler(h))
	if _, err := server.RunDue(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func done(context.Context, string, [][]byte) error { return nil }

// ofKind returns the spans of a kind that have ended.
func (s *shop) ofKind(kind trace.SpanKind) (spans tracetest.SpanStubs) {
	for _, span := range s.spans.GetSpans() {
		if span.SpanKind == kind {
			spans = append(spans, span)
		}
	}
	return spans
}

func attributes(span tracetest.SpanStub) map[string]any {
	all := make(map[string]any)
	for _, a := range span.Attributes {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

func linked(span tracetest.SpanStub) (ids []string) {
	for _, l := range span.Links {
		ids = append(ids, l.SpanContext.SpanID().String())
	}
	return ids
}

func TestARunLinksToThePushesOfItsPayloads(t *testing.T) {
	s := newShop(t, otel.TracingOptions{IDs: true, Shards: true})
	ctx, caller := s.provider.Tracer("test").Start(t.Context(), "request")
	s.push(ctx, "42", "one")
	s.push(ctx, "42", "two")
	caller.End()
	var handler trace.SpanContext
	s.run(func(ctx context.Context, _ string, _ [][]byte) error {
		handler = trace.SpanContextFromContext(ctx)
		return nil
	})
	pushes, runs := s.ofKind(trace.SpanKindProducer), s.ofKind(trace.SpanKindConsumer)
	if len(pushes) != 2 || len(runs) != 1 {
		t.Fatalf("%d pushes and %d runs, want 2 and 1", len(pushes), len(runs))
	}
	for _, p := range pushes {
		if p.Name != "push orders" || p.Parent.SpanID() != caller.SpanContext().SpanID() {
			t.Errorf("a push is %q below %v", p.Name, p.Parent.SpanID())
		}
	}
	run := runs[0]
	if diff := cmp.Diff([]string{pushes[0].SpanContext.SpanID().String(), pushes[1].SpanContext.SpanID().String()},
		linked(run)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if run.Parent.IsValid() || run.SpanContext.SpanID() != handler.SpanID() || run.Status.Code != codes.Unset {
		t.Errorf("the run is below %v, with the status %v; its handler has %v",
			run.Parent, run.Status, handler.SpanID())
	}
	shard := attributes(run)["messaging.destination.partition.id"]
	if shard == nil {
		t.Error("no shard")
	}
	if diff := cmp.Diff(map[string]any{
		"messaging.system":                   "skein",
		"messaging.operation.name":           "process",
		"messaging.operation.type":           "process",
		"messaging.destination.name":         "orders",
		"messaging.batch.message_count":      int64(2),
		"skein.jobs":                         int64(1),
		"skein.retries":                      int64(0),
		"skein.id":                           "42",
		"messaging.destination.partition.id": shard,
	}, attributes(run)); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestNoIDUnlessItIsAskedFor(t *testing.T) {
	s := newShop(t, otel.TracingOptions{})
	s.push(t.Context(), "secret", "payload")
	s.run(done)
	for _, span := range s.spans.GetSpans() {
		if text := fmt.Sprint(span); strings.Contains(text, "secret") ||
			attributes(span)["messaging.destination.partition.id"] != nil {
			t.Errorf("a span tells the id or the shard: %s", text)
		}
	}
}

func TestARetryLinksToItsPushAgain(t *testing.T) {
	s := newShop(t, otel.TracingOptions{})
	s.queue = skein.NewQueue("orders", skein.QueueOptions[[]byte]{
		Codec:   skein.RawCodec{},
		Backoff: func(int) time.Duration { return 0 },
	})
	s.push(t.Context(), "42", "one")
	calls := 0
	s.run(func(context.Context, string, [][]byte) error {
		if calls++; calls < 3 {
			return fmt.Errorf("charge: %w", errors.New("the bank is closed"))
		}
		return nil
	})
	push := s.ofKind(trace.SpanKindProducer)[0].SpanContext.SpanID().String()
	runs := s.ofKind(trace.SpanKindConsumer)
	if len(runs) != 3 {
		t.Fatalf("%d runs, want 3", len(runs))
	}
	for i, run := range runs {
		if diff := cmp.Diff([]string{push}, linked(run)); diff != "" || attributes(run)["skein.retries"] != int64(i) {
			t.Errorf("run %d has %v: %s", i, run.Attributes, diff)
		}
		failed := i < 2
		if (run.Status.Code == codes.Error) != failed ||
			failed && run.Status.Description != "charge: the bank is closed" {
			t.Errorf("run %d has the status %v", i, run.Status)
		}
	}
}

func TestHowASpanEnds(t *testing.T) {
	type private struct{ error }
	tests := []struct {
		name    string
		options otel.TracingOptions
		err     error
		want    sdk.Status
		also    attribute.KeyValue
	}{
		{"done", otel.TracingOptions{}, nil, sdk.Status{}, attribute.KeyValue{}},
		{"snoozed", otel.TracingOptions{}, skein.Snooze(time.Hour), sdk.Status{},
			attribute.Bool("skein.snoozed", true)},
		{"awaiting", otel.TracingOptions{}, skein.Await(time.Hour), sdk.Status{},
			attribute.Bool("skein.awaiting", true)},
		{"failed", otel.TracingOptions{}, errors.New("boom"), sdk.Status{Code: codes.Error, Description: "boom"},
			attribute.String("error.type", "_OTHER")},
		{"of a type", otel.TracingOptions{}, fmt.Errorf("charge: %w", private{errors.New("boom")}),
			sdk.Status{
				Code:        codes.Error,
				Description: "charge: boom",
			}, attribute.String("error.type", "otel_test.private")},
		{"a text that is hidden", otel.TracingOptions{ErrorText: func(error) string { return "" }}, errors.New("boom"),
			sdk.Status{Code: codes.Error}, attribute.KeyValue{}},
		{"a function that panics", otel.TracingOptions{ErrorText: func(error) string { panic("oh") }},
			errors.New("boom"), sdk.Status{Code: codes.Error}, attribute.KeyValue{}},
		{"a long text", otel.TracingOptions{}, errors.New(strings.Repeat("x", 5000)),
			sdk.Status{Code: codes.Error, Description: strings.Repeat("x", 1000)}, attribute.KeyValue{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, tt.options)
			s.push(t.Context(), "42", "one")
			s.run(func(context.Context, string, [][]byte) error { return tt.err })
			run := s.ofKind(trace.SpanKindConsumer)[0]
			if diff := cmp.Diff(tt.want, run.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if tt.also.Key != "" && attributes(run)[string(tt.also.Key)] != tt.also.Value.AsInterface() {
				t.Errorf("attributes %v; want %v", run.Attributes, tt.also)
			}
		})
	}
}

func TestAPanicEndsItsSpan(t *testing.T) {
	s := newShop(t, otel.TracingOptions{})
	s.push(t.Context(), "42", "one")
	s.run(func(context.Context, string, [][]byte) error { panic("boom") })
	if run := s.ofKind(trace.SpanKindConsumer)[0]; run.Status.Code != codes.Error ||
		attributes(run)["error.type"] != "panic" {
		t.Errorf("status %v, attributes %v", run.Status, run.Attributes)
	}
}

func TestAPushThatFailsSaysSo(t *testing.T) {
	s := newShop(t, otel.TracingOptions{})
	client := skein.NewClient(nil, skein.ClientOptions{Middleware: []skein.PushMiddleware{s.tracing.Push}})
	if err := s.queue.Push(t.Context(), client, "42", nil); err == nil {
		t.Fatal("a client without a store has pushed")
	}
	if spans := s.ofKind(trace.SpanKindProducer); len(spans) != 0 && spans[0].Status.Code != codes.Error {
		t.Errorf("status %v", spans[0].Status)
	}
}

func TestOnePushOfManyIsOneLink(t *testing.T) {
	s := newShop(t, otel.TracingOptions{})
	var entries []skein.Entry[[]byte]
	for i := range 50 {
		entries = append(entries, skein.Entry[[]byte]{ID: "42", Payload: fmt.Append(nil, i)})
	}
	if err := s.queue.PushMany(t.Context(), s.client, entries); err != nil {
		t.Fatal(err)
	}
	s.run(done)
	if run := s.ofKind(trace.SpanKindConsumer)[0]; len(run.Links) != 1 ||
		attributes(run)["messaging.batch.message_count"] != int64(50) {
		t.Errorf("%d links, attributes %v; want 1, of 50 payloads", len(run.Links), run.Attributes)
	}
}

func TestLinksAreBounded(t *testing.T) {
	for most, want := range map[int]int{0: 128, -1: 0, 3: 3} {
		s := newShop(t, otel.TracingOptions{MaxLinks: most})
		for i := range 200 {
			s.push(t.Context(), "42", fmt.Sprint(i))
		}
		s.run(done)
		run := s.ofKind(trace.SpanKindConsumer)[0]
		if len(run.Links) != want {
			t.Errorf("MaxLinks %d: %d links, want %d", most, len(run.Links), want)
		}
		if first := s.ofKind(trace.SpanKindProducer)[0].SpanContext.SpanID().String(); want > 0 &&
			linked(run)[0] != first {
			t.Errorf("MaxLinks %d: the first link is not to the payload of the lowest score", most)
		}
	}
}

// A foreign Meta stays, and links to nothing.
func TestForeignMetaIsLeftAlone(t *testing.T) {
	foreign := []string{
		"mine", " ", "00-", "00-zz-zz-01", "\x00\xff", strings.Repeat("x", 256),
		"00-00000000000000000000000000000000-0000000000000000-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 \xff=\x00",
	}
	for i, meta := range foreign {
		s := newShop(t, otel.TracingOptions{})
		var kept []byte
		see := func(next skein.RunFunc) skein.RunFunc {
			return func(ctx context.Context, b *skein.RawBatch) error {
				kept = b.Jobs[0].Payloads[0].Meta
				return next(ctx, b)
			}
		}
		s.push(t.Context(), "42", "one", skein.Meta([]byte(meta)))
		server := skein.NewServer(s.store, skein.ServerOptions{
			Logger:     slog.New(slog.DiscardHandler),
			Middleware: []skein.Middleware{s.tracing.Run, see},
		}, s.queue.Handler(done))
		if _, err := server.RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kept, []byte(meta)) {
			t.Errorf("Meta %q has become %q", meta, kept)
		}
		links := len(s.ofKind(trace.SpanKindConsumer)[0].Links)
		if want := map[bool]int{true: 1}[i == len(foreign)-1]; links != want {
			t.Errorf("Meta %q: %d links, want %d", meta, links, want)
		}
	}
}

// A tracestate goes along if there is room.
func TestTracestateGoesAlong(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  string
	}{{"one", "vendor=one"}, {strings.Repeat("x", 250), ""}} {
		s := newShop(t, otel.TracingOptions{})
		state, err := trace.ParseTraceState("vendor=" + tt.value)
		if err != nil {
			t.Fatal(err)
		}
		caller := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID:    trace.TraceID{1},
			SpanID:     trace.SpanID{2},
			TraceFlags: trace.FlagsSampled,
			TraceState: state,
		})
		s.push(trace.ContextWithSpanContext(t.Context(), caller), "42", "one")
		s.run(done)
		link := s.ofKind(trace.SpanKindConsumer)[0].Links[0].SpanContext
		if link.TraceState().String() != tt.want || link.TraceID() != caller.TraceID() {
			t.Errorf("a tracestate of %d bytes: the link has %q of %v",
				len(tt.value), link.TraceState(), link.TraceID())
		}
	}
}

// Without a provider nothing is traced, and nothing is stored.
func TestWithoutATracerNothingIsStored(t *testing.T) {
	tracing := otel.NewTracing(otel.TracingOptions{})
	store := memory.New(memory.Options{})
	queue := skein.NewQueue("orders", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}})
	client := skein.NewClient(store, skein.ClientOptions{Middleware: []skein.PushMiddleware{tracing.Push}})
	if err := queue.Push(t.Context(), client, "42", nil); err != nil {
		t.Fatal(err)
	}
	var meta []byte
	see := func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, b *skein.RawBatch) error {
			meta = b.Jobs[0].Payloads[0].Meta
			return next(ctx, b)
		}
	}
	server := skein.NewServer(store, skein.ServerOptions{
		Logger:     slog.New(slog.DiscardHandler),
		Middleware: []skein.Middleware{tracing.Run, see},
	}, queue.Handler(done))
	if _, err := server.RunDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(meta) != 0 {
		t.Errorf("Meta %q", meta)
	}
}
