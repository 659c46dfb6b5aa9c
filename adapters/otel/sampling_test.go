package otel_test

import (
	"context"
	"fmt"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/otel"
)

// chosen samples spans of traces that the test has chosen, and counts its calls.
type chosen struct {
	sample bool
	asked  int
}

func (c *chosen) ShouldSample(sdk.SamplingParameters) sdk.SamplingResult {
	c.asked++
	if c.sample {
		return sdk.SamplingResult{Decision: sdk.RecordAndSample}
	}
	return sdk.SamplingResult{Decision: sdk.Drop}
}

func (*chosen) Description() string { return "chosen" }

// TestWhatIsNotSampledIsNotStored holds that only a push that somebody records takes room in the
// store.
func TestWhatIsNotSampledIsNotStored(t *testing.T) {
	for _, sample := range []bool{false, true} {
		s := newShop(t, otel.TracingOptions{})
		tracing := otel.NewTracing(otel.TracingOptions{
			TracerProvider: sdk.NewTracerProvider(sdk.WithSampler(&chosen{sample: sample})),
		})
		s.client = skein.NewClient(s.store, skein.ClientOptions{Middleware: []skein.PushMiddleware{tracing.Push}})
		s.push(t.Context(), "a", "p")
		s.run(done)
		spans := s.ofKind(trace.SpanKindConsumer)
		if len(spans) != 1 || (len(spans[0].Links) == 1) != sample {
			t.Errorf("sampled %v: spans %v", sample, spans)
		}
	}
}

// TestOnlyRunsOfSampledPushes checks that with OnlySampled a run has a span if one of its pushes
// was sampled, also beside others, and that the sampler is not called for any other.
func TestOnlyRunsOfSampledPushes(t *testing.T) {
	pushes, runs := &chosen{}, &chosen{sample: true}
	s := newShop(t, otel.TracingOptions{})
	push := otel.NewTracing(otel.TracingOptions{TracerProvider: sdk.NewTracerProvider(sdk.WithSampler(pushes))})
	s.client = skein.NewClient(s.store, skein.ClientOptions{Middleware: []skein.PushMiddleware{push.Push}})
	s.tracing = otel.NewTracing(otel.TracingOptions{
		TracerProvider: sdk.NewTracerProvider(sdk.WithSyncer(s.spans), sdk.WithSampler(runs)), OnlySampled: true,
	})
	for _, tt := range []struct {
		sampled []bool
		spans   int
	}{{[]bool{false}, 0}, {[]bool{false, true, false}, 1}, {[]bool{true}, 1}} {
		s.spans.Reset()
		runs.asked = 0
		for i, sample := range tt.sampled {
			pushes.sample = sample
			s.push(t.Context(), "a", fmt.Sprint(i))
		}
		handled := 0
		s.run(func(_ context.Context, _ string, payloads [][]byte) error { handled = len(payloads); return nil })
		spans := s.ofKind(trace.SpanKindConsumer)
		if len(spans) != tt.spans || runs.asked != tt.spans || handled != len(tt.sampled) ||
			tt.spans == 1 && len(spans[0].Links) != 1 {
			t.Errorf("pushes %v: %d payloads handled, sampler asked %d times, spans %v",
				tt.sampled, handled, runs.asked, spans)
		}
	}
}
