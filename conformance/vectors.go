package conformance

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/skeinq/skein/core"
)

// vectors are the worked cases of docs/rules.md, which core is held to as well.
//
//go:embed testdata/merge.json testdata/failure.json testdata/recovery.json
var vectors embed.FS

// vectorCases run each file through the store, one backend and one id after
// another.
func vectorCases() []namedCase {
	return []namedCase{
		{"merge", "RULES 2", func(e *env) { eachVector(e, "merge.json", mergeVector) }},
		{"failure", "RULES 3", func(e *env) { eachVector(e, "failure.json", failureVector) }},
		{"recovery", "RULES 4", func(e *env) { eachVector(e, "recovery.json", recoveryVector) }},
	}
}

// eachVector checks every case of a file and removes what it left.
func eachVector[T any](e *env, name string, check func(*env, string, *T)) {
	e.tb.Helper()
	text, err := vectors.ReadFile("testdata/" + name)
	e.must(err, "reading the vectors")
	var file struct{ Cases []T }
	e.must(json.Unmarshal(text, &file), "reading the vectors")
	if len(file.Cases) == 0 {
		e.tb.Fatalf("%s has no cases", name)
	}
	rule := e.rule
	for i := range file.Cases {
		e.rule = fmt.Sprintf("%s, testdata/%s, case %d", rule, name, i)
		id := fmt.Sprint(i)
		check(e, id, &file.Cases[i])
		e.byIDs(e.store.Delete, id)
		e.byRefs(e.store.Purge, whole(id))
	}
}

// payloadVector is a payload as [data, score].
type payloadVector core.Payload

func (p *payloadVector) UnmarshalJSON(text []byte) error {
	var data string
	if err := json.Unmarshal(text, &[]any{&data, &p.Score}); err != nil {
		return err
	}
	p.Data = []byte(data)
	return nil
}

type jobVector struct {
	Payloads   []payloadVector
	PerformAt  core.Instant `json:"perform_at_us"`
	RetryCount int          `json:"retry_count"`
	Recoveries int
	Error      string
}

func (v *jobVector) payloads() []core.Payload {
	var out []core.Payload
	for _, p := range v.Payloads {
		out = append(out, core.Payload(p))
	}
	return out
}

func (v *jobVector) entries(id string) []core.Entry {
	var out []core.Entry
	for _, p := range v.payloads() {
		out = append(out, core.Entry{ID: id, Payload: p, When: core.At(v.PerformAt)})
	}
	return out
}

func (v *jobVector) state() core.State {
	return core.State{PerformAt: v.PerformAt, RetryCount: v.RetryCount, Recoveries: v.Recoveries, Error: v.Error}
}

// sameJob compares a queued job with a vector, which says nothing of FirstPush.
func (e *env) sameJob(what string, got core.Job, id string, v *jobVector) {
	e.tb.Helper()
	want := core.Job{}
	if v != nil {
		want = job(id, v.state(), v.payloads()...)
		want.FirstPush = got.FirstPush
	}
	e.same(what, got, want)
}
