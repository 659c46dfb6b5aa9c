package merge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/vectors"
	"github.com/skeinq/skein/ports"
)

// vectorCases run the worked cases on the store: a backend for each file, and an id for each worked
// case. The group merge rule runs those of mergerules.json and imports.json.
func vectorCases() []env.Case {
	return []env.Case{
		{Name: "merge", Rule: "RULES 2", Check: func(e *env.Env) { eachVector(e, "merge.json", mergeVector) }},
		{Name: "failure", Rule: "RULES 3", Check: func(e *env.Env) { eachVector(e, "failure.json", failureVector) }},
		{Name: "recovery", Rule: "RULES 4", Check: func(e *env.Env) { eachVector(e, "recovery.json", recoveryVector) }},
		{
			Name:  "first",
			Rule:  "RULES 3: the burial or deletion of a job's first payload by hand",
			Check: func(e *env.Env) { eachVector(e, "first.json", firstVector) },
		},
		{Name: "awaits", Rule: env.RuleAwait, Check: func(e *env.Env) { eachVector(e, "awaits.json", awaitVector) }},
		{
			Name:  "moved",
			Rule:  "RULES 4: a job that was recovered more often than its queue allows does not run",
			Check: func(e *env.Env) { eachVector(e, "moved.json", movedVector) },
		},
		{
			Name:  "tags",
			Rule:  "RULES 2: tags unite, and the 8 that are first in the order of their bytes stay",
			Check: func(e *env.Env) { eachVector(e, "tags.json", tagsVector) },
		},
	}
}

// readVectors returns the worked cases of a file.
func readVectors[T any](e *env.Env, name string) []T {
	e.TB.Helper()
	list, err := vectors.Read[T](name)
	e.Must(err, "reading the vectors")
	return list
}

// eachVector checks every case of a file and removes what it left.
func eachVector[T any](e *env.Env, name string, check func(*env.Env, string, *T)) {
	e.TB.Helper()
	rule := e.Rule
	list := readVectors[T](e, name)
	for i := range list {
		e.Rule = fmt.Sprintf("%s, %s, case %d", rule, name, i)
		id := fmt.Sprint(i)
		check(e, id, &list[i])
		e.ByIDs(e.Store.Delete, id)
		e.ByRefs(e.Store.Purge, env.Whole(id))
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
	Errors     []string
	Slot       string
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
	return core.State{
		PerformAt:  v.PerformAt,
		RetryCount: v.RetryCount,
		Recoveries: v.Recoveries,
		Failures:   textFailures(v.Errors),
		Slot:       v.Slot,
	}
}

// textFailures returns failures with only these texts, the newest first.
func textFailures(texts []string) core.Failures {
	var list core.Failures
	for _, text := range texts {
		list = append(list, core.Failure{Text: text})
	}
	return list
}

// sameJob compares a queued job with a vector, which does not contain FirstPush.
func sameJob(e *env.Env, what string, got core.Job, id string, v *jobVector) {
	e.TB.Helper()
	want := core.Job{}
	if v != nil {
		want = env.Job(id, v.state(), v.payloads()...)
		want.FirstPush = got.FirstPush
	}
	e.Same(what, got, want)
}

type mergeVectorCase struct {
	Kind, Policy           string
	Now                    core.Instant `json:"now_us"`
	FirstPush              core.Instant `json:"first_push_us"`
	Limit                  int64        `json:"limit_us"`
	Urgency                int64        `json:"urgency_us"`
	Queued, Coming, Merged jobVector
}

func mergeVector(e *env.Env, id string, v *mergeVectorCase) {
	e.TB.Helper()
	switch v.Kind {
	case "push":
		mergePush(e, id, v)
	case "revived":
		mergeRevived(e, id, v)
	case "failed", "returned", "recovered":
		mergeReturned(e, id, v)
	case "imported":
		e.Bring(id, v.Queued.state(), v.Queued.payloads()...)
		e.BringInJobs(env.Job(id, v.Coming.state(), v.Coming.payloads()...))
	default:
		e.TB.Fatalf("unknown kind of merge %q", v.Kind)
	}

	sameJob(e, "the merged job", e.Queued(id), id, &v.Merged)
}

func mergePush(e *env.Env, id string, v *mergeVectorCase) {
	e.TB.Helper()
	if v.FirstPush != 0 {
		e.Clock.Set(v.FirstPush.Time())
	}

	e.Place(id, v.Queued.state(), v.Queued.payloads()...)
	e.Clock.Set(v.Now.Time())

	kinds := map[string]core.RuleKind{"keep": core.Keep, "earliest": core.Earliest, "debounce": core.Debounce}
	rule := core.PushRule{Kind: kinds[v.Policy], Limit: time.Duration(v.Limit) * time.Microsecond}

	// The payloads of one push for an id merge one after another, with the same result.
	entries := v.Coming.entries(id)
	for i := range entries {
		if v.Policy == "urgent" {
			entries[i].When = core.Urgent(time.Duration(v.Urgency) * time.Microsecond)
		}
	}

	e.PushBy(rule, entries...)
}

func mergeRevived(e *env.Env, id string, v *mergeVectorCase) {
	e.TB.Helper()
	e.Clock.Set(v.Now.Time())
	e.Push(v.Coming.entries(id)...)
	e.ByIDs(e.Store.Bury, id)
	e.Place(id, v.Queued.state(), v.Queued.payloads()...)
	e.ByRefs(e.Store.Revive, env.Whole(id))
}

// mergeReturned needs a queued job with retries and an error while its id is claimed. A cut claim
// leaves such a job: a last payload is added to the coming ones, the claim is cut in front of it,
// and the queued payloads are pushed onto the rest. The merged job has the added payload too.
func mergeReturned(e *env.Env, id string, v *mergeVectorCase) {
	e.TB.Helper()

	added := env.Pay("added", math.MaxFloat64)
	e.Clock.Set(max(v.Now, v.Queued.PerformAt).Time())
	e.Place(id, v.Queued.state(), append(v.Coming.payloads(), added)...)
	h := e.Acquire("merger")
	c := h.Cut(len(v.Coming.Payloads))

	e.Push(v.Queued.entries(id)...)
	e.Clock.Set(v.Now.Time())
	h.Settle(core.Settlement{ID: id, Receipt: c.Receipt, Rest: core.Requeue, PutBack: core.PutBack{
		Delay:      v.Coming.PerformAt.Sub(v.Now),
		RetryCount: v.Coming.RetryCount,
		Failures:   textFailures(v.Coming.Errors),
		Slot:       v.Coming.Slot,
	}})
	h.Release()

	v.Merged.Payloads = append(v.Merged.Payloads, payloadVector(added))
}

type failureVectorCase struct {
	Job        jobVector
	Now        core.Instant `json:"now_us"`
	Error      string
	MaxRetries int `json:"max_retries"`
	Hold       bool
	Jitter     int
	// Done and Buried are the positions of payloads with an outcome of their own.
	Done    []int
	Buried  []int
	Outcome struct {
		Requeue *jobVector
		Bury    *jobVector
	}
}

// outcome returns the outcome of the worked case's handler.
func (v *failureVectorCase) outcome() *core.Outcome {
	o := &core.Outcome{Kind: core.Failed, Error: v.Error}
	for _, at := range v.Done {
		o.Payloads = append(o.Payloads, core.PayloadOutcome{Position: at})
	}
	for _, at := range v.Buried {
		o.Payloads = append(o.Payloads, core.PayloadOutcome{Position: at, Bury: true, Error: "by hand"})
	}
	slices.SortFunc(o.Payloads, func(a, b core.PayloadOutcome) int { return a.Position - b.Position })
	return o
}

func exhaustion(hold bool) core.Exhaustion {
	if hold {
		return core.Hold
	}
	return core.BuryFirst
}

// claimVector claims the job of a vector at a time.
func claimVector(e *env.Env, id string, now core.Instant, v *jobVector) (*env.Holder, core.Claim) {
	e.TB.Helper()
	e.Clock.Set(now.Time())
	e.Place(id, v.state(), v.payloads()...)
	h := e.Acquire("n1")
	c := h.One()
	sameJob(e, "the claimed job", c.Job, id, v)
	return h, c
}

func failureVector(e *env.Env, id string, v *failureVectorCase) {
	e.TB.Helper()
	h, c := claimVector(e, id, v.Now, &v.Job)

	policy := core.RetryPolicy{MaxRetries: v.MaxRetries, Exhausted: exhaustion(v.Hold)}
	h.Settle(policy.Settlement(&c, v.outcome(), v.Jitter))
	h.Release()
	sameJob(e, "what was put back", e.Queued(id), id, v.Outcome.Requeue)

	want := core.DeadLetter{}
	if b := v.Outcome.Bury; b != nil {
		want = core.DeadLetter{
			ID:        id,
			ChangedAt: v.Now,
			Failures:  textFailures(b.Errors),
			Group:     core.OtherGroup,
			Payloads:  b.payloads(),
		}
	}
	e.Same("what was buried", e.DeadLetter(id), want)
}

type firstVectorCase struct {
	Job  jobVector
	Now  core.Instant `json:"now_us"`
	Rest *jobVector
}

// firstVector buries the first payload of a job, deletes it, and deletes it by its bytes and score.
func firstVector(e *env.Env, id string, v *firstVectorCase) {
	e.TB.Helper()
	e.Clock.Set(v.Now.Time())
	first := v.Job.payloads()[0]

	for _, way := range []struct {
		name string
		do   env.JobStep
		step ports.JobStep
		dead bool
	}{
		{"Bury", e.Store.Bury, ports.JobStep{First: [][]byte{first.Data}}, true},
		{"Delete", e.Store.Delete, ports.JobStep{First: [][]byte{first.Data}}, false},
		{"Delete of payloads", e.Store.Delete, ports.JobStep{Payloads: [][]core.Payload{{first}}}, false},
	} {
		e.Bring(id, v.Job.state(), v.Job.payloads()...)
		way.step.Shard, way.step.IDs = e.Shard, []string{id}

		reply, err := way.do(e.Ctx, way.step)
		e.Must(err, way.name)
		e.Reported("how many "+way.name+" handled", reply.Handled, 1)
		sameJob(e, "the job after "+way.name, e.Queued(id), id, v.Rest)

		var dead []core.Payload
		if way.dead {
			dead = []core.Payload{first}
		}
		e.Same("what is dead after "+way.name, e.DeadLetter(id).Payloads, dead)

		e.ByIDs(e.Store.Delete, id)
		e.ByRefs(e.Store.Purge, env.Whole(id))
	}
}

type awaitVectorCase struct {
	Now            core.Instant `json:"now_us"`
	FirstPush      core.Instant `json:"first_push_us"`
	Slot           string
	Delay          int64 `json:"delay_us"`
	Queued, Merged *struct {
		PerformAt core.Instant `json:"perform_at_us"`
		FirstPush core.Instant `json:"first_push_us"`
	}
}

func awaitVector(e *env.Env, id string, v *awaitVectorCase) {
	e.TB.Helper()
	e.Clock.Set(v.Now.Time())
	state := core.State{RetryCount: 3, FirstPush: v.FirstPush, Failures: env.Failures("boom"), Slot: v.Slot}
	e.Bring(id, state, env.Pay("p", 1))

	h := e.Acquire("n1")
	c := h.One()
	payloads := []core.Payload{env.Pay("p", 1)}

	if q := v.Queued; q != nil {
		queued := core.State{RetryCount: core.FreshRetryCount, PerformAt: q.PerformAt, FirstPush: q.FirstPush}
		e.BringInJobs(env.Job(id, queued, env.Pay("q", 2)))
		payloads = append(payloads, env.Pay("q", 2))
	}

	h.Settle(env.Awaiting(c, time.Duration(v.Delay)*time.Microsecond))
	want := core.State{RetryCount: core.FreshRetryCount, PerformAt: v.Merged.PerformAt, FirstPush: v.Merged.FirstPush}
	e.Same("the job that awaits", e.Queued(id), env.Job(id, want, payloads...))
	h.Release()
}

type movedVectorCase struct {
	Job           jobVector
	Now           core.Instant `json:"now_us"`
	MaxRecoveries int          `json:"max_recoveries"`
	Hold, Runs    bool
	Outcome       struct {
		Requeue *jobVector
		Buried  []payloadVector
	}
}

// movedVector claims an imported job, and ends it without a run if it was recovered too often.
func movedVector(e *env.Env, id string, v *movedVectorCase) {
	e.TB.Helper()
	e.Clock.Set(v.Now.Time())
	e.BringInJobs(env.Job(id, v.Job.state(), v.Job.payloads()...))

	h := e.Acquire("n1")
	c := h.One()
	sameJob(e, "the claimed job", c.Job, id, &v.Job)

	policy := core.RetryPolicy{MaxRecoveries: v.MaxRecoveries, Exhausted: exhaustion(v.Hold)}
	e.Same("whether it runs", !policy.RecoveredTooOften(&c), v.Runs)
	requeue, s := &v.Job, policy.Settlement(&c, &core.Outcome{Kind: core.Untouched}, 0)
	if !v.Runs {
		requeue, s = v.Outcome.Requeue, policy.Recover(&c, 0)
	}
	h.Settle(s)
	h.Release()
	sameJob(e, "what was put back", e.Queued(id), id, requeue)

	want := core.DeadLetter{}
	if b := (&jobVector{Payloads: v.Outcome.Buried}).payloads(); b != nil {
		want = core.DeadLetter{
			ID:        id,
			ChangedAt: v.Now,
			Failures:  s.Letter.Failures,
			Group:     core.RecoveredGroup,
			Payloads:  b,
		}
	}
	e.Same("what was buried", e.DeadLetter(id), want)
}

type recoveryVectorCase struct {
	Job           jobVector
	Now           core.Instant `json:"now_us"`
	MaxRecoveries int          `json:"max_recoveries"`
	Hold          bool
	// Ended is how many payloads, from the first on, ended by themselves before the owner was lost.
	Ended   int
	Begun   bool
	Outcome struct {
		Requeue *jobVector
		Buried  []payloadVector
	}
}

func recoveryVector(e *env.Env, id string, v *recoveryVectorCase) {
	e.TB.Helper()
	h, lost := claimVector(e, id, v.Now, &v.Job)

	for range v.Ended {
		part := lost.SettlePayload(0)
		r := h.Request(0)
		r.Parts = []core.PayloadSettlement{part}
		h.Send(r)
		lost, _ = part.Apply(lost)
		lost.Begun = true
	}

	if v.Begun {
		h.Begin(lost)
		lost.Begun = true
	}

	h = e.Acquire("n1")
	left := h.Orphans()
	e.Same("the job left", left, []core.Claim{lost})

	s := core.RetryPolicy{MaxRecoveries: v.MaxRecoveries, Exhausted: exhaustion(v.Hold)}.Recover(&left[0], 0)
	h.Settle(s)
	h.Release()
	sameJob(e, "what was put back", e.Queued(id), id, v.Outcome.Requeue)

	want := core.DeadLetter{}
	if b := (&jobVector{Payloads: v.Outcome.Buried}).payloads(); b != nil {
		want = core.DeadLetter{
			ID:        id,
			ChangedAt: v.Now,
			Failures:  s.Letter.Failures,
			Group:     core.RecoveredGroup,
			Payloads:  b,
		}
	}
	e.Same("what was buried", e.DeadLetter(id), want)
}
