package core_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	rules "github.com/skeinq/skein/internal/vectors"
)

// vectors returns the cases of one file of package vectors: the rules as data.
func vectors[T any](t *testing.T, name string) []T {
	t.Helper()
	cases, err := rules.Read[T](name)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// vectorPayload is written as [text, score].
type vectorPayload core.Payload

func (p *vectorPayload) UnmarshalJSON(text []byte) error {
	var data string
	pair := []any{&data, &p.Score}
	err := json.Unmarshal(text, &pair)
	p.Data = []byte(data)
	return err
}

type vectorPayloads []vectorPayload

func (list vectorPayloads) payloads() []core.Payload {
	var out []core.Payload
	for _, p := range list {
		out = append(out, core.Payload(p))
	}
	return out
}

type vectorJob struct {
	Payloads   vectorPayloads
	PerformAt  core.Instant `json:"perform_at_us"`
	RetryCount int          `json:"retry_count"`
	Recoveries int
	Errors     []string
	Slot       string
}

func (v *vectorJob) state() core.State {
	return core.State{
		PerformAt:  v.PerformAt,
		RetryCount: v.RetryCount,
		Recoveries: v.Recoveries,
		Failures:   failures(v.Errors...),
		Slot:       v.Slot,
	}
}

// failures is a list of failures with these texts, the newest first. Empty texts are no failures.
func failures(texts ...string) core.Failures {
	var list core.Failures
	for _, text := range texts {
		list = append(list, core.Failure{Text: text})
	}
	return list.Stored()
}

func (v *vectorJob) job() core.Job {
	return core.Job{ID: "id", Payloads: v.Payloads.payloads(), State: v.state()}
}

// back is the job that a vector expects to be put back, or no job for null.
func (v *vectorJob) back() core.Job {
	if v == nil {
		return core.Job{}
	}
	return v.job()
}

func payload(data string, score float64) core.Payload {
	return core.Payload{Data: []byte(data), Score: score}
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
