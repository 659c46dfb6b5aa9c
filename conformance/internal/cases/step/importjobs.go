package step

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleImportJobs = "Import adds jobs of another queue to this one, unchanged: " +
		"payloads with Score and Meta, and their State"
	ruleImportState = "RULES 2: a held job stays held, else the state of the job with more failures stays, " +
		"on a tie that of the queued job; of two fresh jobs the earlier time"
	ruleOnlyPaused = "ImportRequest: OnlyPaused refuses a shard that is not paused with ErrNotPaused, " +
		"and nothing is stored"
	ruleImportAgain  = "Import: to repeat a call with jobs changes nothing more"
	ruleImportBeside = "Import: a claimed job stays, and the imported one waits behind it; dead letters stay"
)

func importJobsCases() []env.Case {
	return []env.Case{
		{Name: "stores every field of a job", Rule: ruleImportJobs, Check: importJobsStores},
		{Name: "restores deleted jobs unchanged", Rule: ruleImportJobs, Check: importJobsRestores},
		{
			Name:  "merges payloads with those of a queued job",
			Rule:  "RULES 2: payloads merge by the queue's rule; on a tie the payload that was there stays",
			Check: importJobsMerge,
		},
		{Name: "keeps the state of the job with more failures", Rule: ruleImportState, Check: importJobsState},
		{
			Name:  "keeps the larger Recoveries and the smaller FirstPush",
			Rule:  "RULES 2: Recoveries: the larger. FirstPush: the smaller",
			Check: importJobsUnite,
		},
		{
			Name:  "accepts a job in parts",
			Rule:  "ImportRequest: a job with more payloads comes in parts, each with its State",
			Check: importJobsParts,
		},
		{Name: "changes nothing when it is repeated", Rule: ruleImportAgain, Check: importJobsRepeat},
		{Name: "makes its jobs run", Rule: ruleImportJobs, Check: importJobsRun},
		{
			Name:  "runs a recovered job alone",
			Rule:  "RULES 4: a job with 2 recoveries is claimed alone",
			Check: importJobsAlone,
		},
		{Name: "waits behind a claimed job", Rule: ruleImportBeside, Check: importJobsBesideClaim},
		{Name: "leaves dead letters alone", Rule: ruleImportBeside, Check: importJobsBesideDead},
		{Name: "imports into a paused queue", Rule: "Pause stops claims only", Check: importJobsPaused},
		{
			Name:  "imports into a shard that must be paused only while it is",
			Rule:  ruleOnlyPaused,
			Check: importOnlyPaused,
		},
		{Name: "keeps a held job held", Rule: ruleImportState, Check: importJobsHeld},
		{Name: "refuses a whole request for one invalid job", Rule: ruleImportWhole, Check: importJobsRefused},
		{Name: "refuses more than a step moves", Rule: ruleImportWhole, Check: importJobsTooMuch},
		{
			Name:  "refuses another layout",
			Rule:  "Import: ErrShardCountMismatch for a layout that is not the queue's, with nothing stored",
			Check: importJobsLayout,
		},
	}
}

// oddJobs returns jobs with values that a careless store loses.
func oddJobs() []core.Job {
	meta := func(p core.Payload, meta string) core.Payload { p.Meta = []byte(meta); return p }

	return []core.Job{
		env.Job("a", core.State{RetryCount: core.FreshRetryCount}, env.Pay("", 0)),
		env.Job("b",
			core.State{
				PerformAt:  env.Start - 1,
				RetryCount: 24,
				Recoveries: 1,
				FirstPush:  12345,
				Failures:   env.Failures("\u00e9\n\t\u2028"),
			},
			env.Pay("p", -math.MaxFloat64), meta(env.Pay("\x00\xff", -1), "\x00m"),
			env.Pay("q", math.SmallestNonzeroFloat64),
			meta(env.Pay("r", 0.1), strings.Repeat("m", core.MaxMetaBytes)), env.Pay("s", 1.7e9+1e-6),
			env.Pay("t", 1<<53), env.Pay("u", math.MaxFloat64)),
		env.Job("c",
			core.State{
				PerformAt:  env.Start.Add(time.Hour),
				RetryCount: core.FreshRetryCount,
				Recoveries: 5,
				FirstPush:  env.Start.Add(time.Minute),
				Failures:   env.Failures("of the rest", "", "3", "4", "5"),
			},
			meta(env.Pay("p", 1), "only")),
		env.Job("d", env.Retrying(env.Start.Add(time.Hour), 3), many(20)...),
		env.Job("e",
			core.State{
				PerformAt:  core.MaxInstant,
				RetryCount: math.MaxInt32,
				Recoveries: math.MaxInt32,
				FirstPush:  core.MaxInstant,
				Failures:   env.Failures(strings.Repeat("e", core.MaxErrorBytes)),
			},
			env.Pay("p", 1)),
	}
}

func importJobsStores(e *env.Env) {
	jobs := oddJobs()
	e.BringInJobs(jobs...)
	for _, j := range jobs {
		j.FirstPush = min(j.FirstPush, e.Now())
		e.Same("the job "+j.ID, e.Queued(j.ID), j)
	}

	e.Same("the queued by time", e.QueuedIDs(), []string{"a", "b", "c", "d", "e"})
	counts := e.Counts()
	e.Same("fresh, retrying and dead", [3]int64{counts.Fresh, counts.Retrying, counts.Dead}, [3]int64{2, 3, 0})

	j := env.Job("f", env.Fresh(env.Start), core.Payload{Data: []byte("p"), Score: math.Copysign(0, -1)})
	e.BringInJobs(j)
	e.Same("the score -0", math.Signbit(e.Queued("f").Payloads[0].Score), false)
	e.Same("the caller's, which is only read", math.Signbit(j.Payloads[0].Score), true)

	reply, err := e.Store.Import(e.Ctx, e.ImportJobs(env.Job("g", env.Fresh(env.Start), env.Pay("p", 1))))
	e.Must(err, "Import")
	e.Reported("the reply", reply, ports.StepReply{Handled: 1, Reached: 1, Now: e.Now()})

	recount := e.Recount(0, func() {})
	e.Same("the counts, one by one", recount.After, recount.Before)
}

func importJobsRestores(e *env.Env) {
	e.Forget()
	e.DeclareWith(ports.DeclareRequest{Queue: env.Orders, Shards: 1, IndexIDs: true})
	e.FailAll("x", "y")
	e.Push(core.Entry{ID: "meta", Payload: core.Payload{Data: []byte("p"), Score: 2, Meta: []byte("m")}})
	e.PushPayloads(20, "large")

	before := e.Snapshot(env.Orders)
	var jobs []core.Job
	for _, id := range e.QueuedIDs() {
		jobs = append(jobs, e.Queued(id))
	}

	e.ByIDs(e.Store.Delete, e.QueuedIDs()...)
	e.Clock.Advance(time.Minute)
	e.BringInJobs(jobs...)
	e.Clock.Set(env.Start.Time())

	e.Same("the queue", e.Snapshot(env.Orders), before)
}

func importJobsMerge(e *env.Env) {
	tagged := core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("there")}
	untagged := core.Payload{Data: []byte("n"), Score: 5}
	for _, more := range []int{0, 30} {
		id := fmt.Sprint("with ", more, " more")
		existing := env.Job(id, env.Fresh(env.Start), env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3), tagged, untagged)
		incoming := env.Job(id, env.Fresh(env.Start), env.Pay("r", 2.5), env.Pay("p", 3), env.Pay("o", 4),
			core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("coming")},
			core.Payload{Data: []byte("n"), Score: 5, Meta: []byte("coming")})

		for i := range more {
			existing.Payloads = append(existing.Payloads, env.Pay(fmt.Sprint("more ", 100+i), float64(100+i)))
		}
		e.BringInJobs(existing)
		e.BringInJobs(incoming)

		want := existing
		want.Payloads = append(
			[]core.Payload{env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 2.5), env.Pay("o", 4), tagged, untagged},
			existing.Payloads[5:]...,
		)
		e.Same("the job", e.Queued(id), want)

		lower := env.Job(id, env.Fresh(env.Start), core.Payload{Data: []byte("m"), Score: 4.5},
			core.Payload{Data: []byte("n"), Score: 4.5, Meta: []byte("new")})
		e.BringInJobs(lower)
		e.Same("the Metas that came with smaller scores", e.Queued(id).Payloads[4:6], lower.Payloads)
	}
}

func importJobsState(e *env.Env) {
	later := env.Start.Add(time.Hour)
	for name, c := range map[string]struct{ existing, incoming, want core.State }{
		"a fresh one onto a fresh one":  {env.Fresh(later), env.Fresh(env.Start), env.Fresh(env.Start)},
		"a later one onto a fresh one":  {env.Fresh(env.Start), env.Fresh(later), env.Fresh(env.Start)},
		"a failed one onto a fresh one": {env.Fresh(env.Start), env.Retrying(later, 2), env.Retrying(later, 2)},
		"a fresh one onto a failed one": {env.Retrying(later, 2), env.Fresh(env.Start), env.Retrying(later, 2)},
		"one with more failures": {
			env.Retrying(later, 2), env.Retrying(env.Start, 3), env.Retrying(env.Start, 3),
		},
		"one with fewer failures": {env.Retrying(later, 2), env.Retrying(env.Start, 1), env.Retrying(later, 2)},
		"another one with as many failures": {
			env.Retrying(later, 2),
			core.State{PerformAt: env.Start, RetryCount: 2, FirstPush: env.Start, Failures: env.Failures("other")},
			env.Retrying(later, 2),
		},
		"a fresh one with an error onto a fresh": {
			env.Fresh(later),
			core.State{PerformAt: env.Start, RetryCount: -1, FirstPush: env.Start, Failures: env.Failures("of the rest")},
			env.Fresh(env.Start),
		},
	} {
		for _, more := range []int{0, 1, 20} {
			id := fmt.Sprint(name, " ", more)
			e.BringInJobs(env.Job(id, c.existing, env.Pay("p", 1)))

			incoming := env.Job(id, c.incoming, append([]core.Payload{env.Pay("p", 0.5)}, many(20)[20-more:]...)...)
			slices.SortFunc(incoming.Payloads, core.Payload.Compare)
			e.BringInJobs(incoming)

			e.Same("the state after "+name, e.Queued(id).State, c.want)
			e.Same("how many payloads it has", len(e.Queued(id).Payloads), 1+more)
		}
	}

	recount := e.Recount(0, func() {})
	e.Same("the counts, one by one", recount.After, recount.Before)
}

func importJobsUnite(e *env.Env) {
	state := func(first core.Instant, recoveries int) core.State {
		return core.State{
			PerformAt:  env.Start,
			RetryCount: core.FreshRetryCount,
			FirstPush:  first,
			Recoveries: recoveries,
		}
	}

	e.BringInJobs(env.Job("a", state(env.Start, 1), env.Pay("p", 1)),
		env.Job("b", state(env.Start.Add(time.Second), 3), env.Pay("p", 1)))
	e.BringInJobs(env.Job("a", state(env.Start.Add(time.Second), 4), env.Pay("p", 1)),
		env.Job("b", state(env.Start, 2), env.Pay("p", 1)))

	e.Same("an older one", e.Queued("a").State, state(env.Start, 4))
	e.Same("a younger one", e.Queued("b").State, state(env.Start, 3))

	e.BringInJobs(env.Job("c", state(env.Start.Add(time.Hour), 0), env.Pay("p", 1)))
	e.Same("one from a clock that is ahead", e.Queued("c").State, state(e.Now(), 0))
}

func importJobsParts(e *env.Env) {
	all := many(2500)
	want := env.Job("a", env.Retrying(env.Start, 3), all...)
	for range 2 {
		for part := range slices.Chunk(all, core.MaxTurnPayloads) {
			e.BringInJobs(env.Job("a", want.State, part...))
		}
		e.Same("the job", e.Queued("a"), want)
	}
	e.Same("how many are retrying", e.Counts().Retrying, int64(1))
}

func importJobsRepeat(e *env.Env) {
	jobs := oddJobs()
	e.BringInJobs(jobs...)
	e.Clock.Advance(time.Minute)
	e.Unchanged("a repeated Import", func() {
		e.BringInJobs(jobs...)
		e.BringInJobs(env.Job("d", env.Retrying(env.Start.Add(time.Hour), 3), many(20)[7:9]...))
	})
}

func importJobsRun(e *env.Env) {
	before := e.Heads(e.Shard)
	e.Same("whether there is a head", before[0].OK, false)

	want := env.Job("a", env.Retrying(env.Start-5, 2), env.TwoPayloads()...)
	e.BringInJobs(want, env.Job("b", env.Fresh(env.Start.Add(time.Hour)), env.Pay("p", 1)))
	e.Same("the head", e.Heads(e.Shard)[0].Due, env.Start-5)

	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claimed job", c.Job, want)
	e.Same("how many more can be claimed", len(h.Claim(2)), 0)

	h.Settle(env.Done(c))
	e.Clock.Advance(time.Hour)
	e.Same("the next", e.Heads(e.Shard)[0].Due, env.Start.Add(time.Hour))
}

func importJobsAlone(e *env.Env) {
	e.PushIDs("x", "y")
	state := env.Fresh(env.Start.Add(-time.Hour))
	state.Recoveries = core.AloneRecoveries
	e.BringInJobs(env.Job("a", state, env.Pay("p", 1)))
	h := e.Acquire("n1")
	got := h.Claim(3)
	e.Same("how many are claimed", len(got), 1)
	e.Same("which", got[0].ID, "a")
}

func importJobsBesideClaim(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()

	e.BringInJobs(env.Job("a", env.Retrying(env.Start.Add(-time.Hour), 9), env.Pay("q", 2)),
		env.Job("b", env.Fresh(env.Start.Add(-time.Hour)), env.Pay("p", 1)))
	e.Same("the claimed job", e.Claimed("a"), c)
	e.Same("the queued one", e.Queued("a"), env.Job("a", env.Retrying(env.Start.Add(-time.Hour), 9), env.Pay("q", 2)))
	e.Same("which can be claimed", h.One().ID, "b")

	h.Settle(env.Failed(c, "boom", time.Minute))
	merged := e.Queued("a")
	e.Same("the payloads once the claimed job has failed",
		merged.Payloads, []core.Payload{env.Pay("p", 1), env.Pay("q", 2)})
	e.Same("its retries, which are the returning job's", merged.RetryCount, 0)
}

func importJobsBesideDead(e *env.Env) {
	e.BuryAll("a")
	before := e.DeadLetter("a")
	e.BringInJobs(env.Job("a", env.Fresh(env.Start), env.Pay("p", 1), env.Pay("z", 9)))
	e.Same("the dead letter", e.DeadLetter("a"), before)
	e.Same("the job", e.Queued("a").Payloads, []core.Payload{env.Pay("p", 1), env.Pay("z", 9)})
}

func importJobsPaused(e *env.Env) {
	e.Pause(env.Orders)
	want := env.Job("a", env.Retrying(env.Start-5, 2), env.TwoPayloads()...)
	e.BringInJobs(want)
	h := e.Acquire("n1")
	e.Same("how many can be claimed", len(h.Claim(1)), 0)
	e.Same("the job", e.Queued("a"), want)
	e.Resume(env.Orders)
	e.Same("the claimed job", h.One().Job, want)
}

func importOnlyPaused(e *env.Env) {
	for what, r := range map[string]ports.ImportRequest{
		"jobs": e.ImportJobs(env.Job("a", env.Fresh(env.Start), env.Pay("p", 1))), "nothing": e.ImportJobs(),
		"dead letters": {
			Shard:       e.Shard,
			Shards:      1,
			Generation:  e.Declared[env.Orders].Generation,
			DeadLetters: []core.DeadLetter{env.Letter("b", 1, env.Pay("p", 1))},
		},
	} {
		r.OnlyPaused = true
		importRefused(e, what+" into a shard that runs", r, ports.ErrNotPaused)

		e.Pause(env.Orders)
		reply, err := e.Store.Import(e.Ctx, r)
		e.Must(err, "Import of "+what+" into a paused shard")
		e.Reported("how many are handled", reply.Handled, len(r.Jobs)+len(r.DeadLetters))
		e.Resume(env.Orders)

		other := r
		other.Generation++
		_, err = e.Store.Import(e.Ctx, other)
		e.Refused("Import with another layout into a shard that runs", err, ports.ErrShardCountMismatch)
	}
}

// importJobsHeld imports held jobs with RetryCount 0, as after a recovery, so that RetryCount does
// not decide which state stays.
func importJobsHeld(e *env.Env) {
	held := core.State{PerformAt: core.MaxInstant, FirstPush: env.Start, Failures: env.Failures("gone")}
	longer := held
	longer.RetryCount = 2

	for name, c := range map[string]struct{ existing, incoming, want core.State }{
		"one with a failure onto a held one": {held, env.Retrying(env.Start, 1), held},
		"a held one onto one with a failure": {env.Retrying(env.Start, 1), held, held},
		"a held one onto a fresh one":        {env.Fresh(env.Start), held, held},
		"a fresh one onto a held one":        {held, env.Fresh(env.Start), held},
		"a held one onto one held longer":    {longer, held, longer},
		"one held longer onto a held one":    {held, longer, longer},
	} {
		for _, more := range []int{0, 20} {
			id := fmt.Sprint(name, " ", more)
			incoming := env.Job(id, c.incoming, append([]core.Payload{env.Pay("p", -1)}, many(more)...)...)
			e.BringInJobs(env.Job(id, c.existing, env.Pay("p", 1)))

			for range 2 {
				e.BringInJobs(incoming)
				e.Same("the job after "+name, e.Queued(id), env.Job(id, c.want, incoming.Payloads...))
			}
		}
	}

	recount := e.Recount(0, func() {})
	e.Same("the counts, one by one", recount.After, recount.Before)
	e.Same("what is claimed", e.Acquire("n1").Claim(5), nil)
}

func importJobsRefused(e *env.Env) {
	good := env.Job("a", env.Fresh(env.Start), env.Pay("p", 1))
	change := func(change func(j *core.Job)) core.Job {
		j := env.Job("b", env.Fresh(env.Start), env.Pay("p", 1))
		change(&j)
		return j
	}

	for name, bad := range map[string]struct {
		job  core.Job
		want error
	}{
		"no id":               {change(func(j *core.Job) { j.ID = "" }), core.ErrInvalidID},
		"a control character": {change(func(j *core.Job) { j.ID = "a\n" }), core.ErrInvalidID},
		"an id twice":         {change(func(j *core.Job) { j.ID = "a" }), ports.ErrInvalidRequest},
		"no payloads":         {change(func(j *core.Job) { j.Payloads = nil }), ports.ErrInvalidRequest},
		"a payload twice": {
			change(func(j *core.Job) { j.Payloads = []core.Payload{env.Pay("p", 1), env.Pay("p", 2)} }),
			ports.ErrInvalidRequest,
		},
		"payloads upside down": {
			change(func(j *core.Job) { j.Payloads = []core.Payload{env.Pay("p", 2), env.Pay("q", 1)} }),
			ports.ErrInvalidRequest,
		},
		"a score that is NaN": {change(func(j *core.Job) { j.Payloads[0].Score = math.NaN() }), core.ErrInvalidScore},
		"a long Meta": {
			change(func(j *core.Job) { j.Payloads[0].Meta = make([]byte, core.MaxMetaBytes+1) }),
			core.ErrInvalidPayload,
		},
		"a PerformAt below 0": {change(func(j *core.Job) { j.PerformAt = -1 }), core.ErrInvalidTime},
		"a PerformAt after the last instant": {
			change(func(j *core.Job) { j.PerformAt = core.MaxInstant + 1 }),
			core.ErrInvalidTime,
		},
		"a FirstPush below 0": {change(func(j *core.Job) { j.FirstPush = -1 }), core.ErrInvalidTime},
		"a FirstPush after the last instant": {
			change(func(j *core.Job) { j.FirstPush = core.MaxInstant + 1 }),
			core.ErrInvalidTime,
		},
		"retries below -1":   {change(func(j *core.Job) { j.RetryCount = -2 }), ports.ErrInvalidRequest},
		"recoveries below 0": {change(func(j *core.Job) { j.Recoveries = -1 }), ports.ErrInvalidRequest},
		"too many retries": {
			change(func(j *core.Job) { j.RetryCount = math.MaxInt32 + 1 }),
			ports.ErrInvalidRequest,
		},
		"too many recoveries": {
			change(func(j *core.Job) { j.Recoveries = math.MaxInt32 + 1 }),
			ports.ErrInvalidRequest,
		},
		"a long error": {
			change(func(j *core.Job) { j.Failures = env.Failures(strings.Repeat("e", core.MaxErrorBytes+1)) }),
			ports.ErrInvalidRequest,
		},
		"six failures": {
			change(func(j *core.Job) { j.Failures = env.Failures("1", "2", "3", "4", "5", "6") }),
			ports.ErrInvalidRequest,
		},
		"an error with NUL": {change(func(j *core.Job) { j.Failures = env.Failures("\x00") }), ports.ErrInvalidRequest},
	} {
		importRefused(e, name, e.ImportJobs(good, bad.job), bad.want)
	}

	both := e.ImportJobs(good)
	both.DeadLetters = []core.DeadLetter{env.Letter("b", 1, env.Pay("p", 1))}
	importRefused(e, "jobs beside dead letters", both, ports.ErrInvalidRequest)
}

func importJobsTooMuch(e *env.Env) {
	var jobs []core.Job
	for i := range ports.MaxStep + 1 {
		jobs = append(jobs, env.Job(fmt.Sprintf("%04d", i), env.Fresh(env.Start), env.Pay("p", 1)))
	}

	for name, r := range map[string]ports.ImportRequest{
		"too many jobs": e.ImportJobs(jobs...),
		"too many payloads": e.ImportJobs(env.Job("a", env.Fresh(env.Start), many(core.MaxTurnPayloads)...),
			env.Job("b", env.Fresh(env.Start), env.Pay("p", 1))),
		"too many bytes": e.ImportJobs(env.Job("a", env.Fresh(env.Start), env.Sized(core.MaxStepBytes, 1)),
			env.Job("b", env.Fresh(env.Start), env.Pay("p", 1))),
	} {
		importRefused(e, name, r, ports.ErrInvalidRequest)
	}

	e.BringInJobs(jobs[:ports.MaxStep]...)
	e.BringInJobs(env.Job("a", env.Fresh(env.Start), many(core.MaxTurnPayloads)...))
	e.Same("how many are queued", e.Counts().Fresh, int64(ports.MaxStep+1))
}

func importJobsLayout(e *env.Env) {
	importIntoLayouts(e, func(r *ports.ImportRequest, id string) {
		r.Jobs = append(r.Jobs, env.Job(id, env.Fresh(env.Start), env.Pay("p", 1)))
	}, func(f ports.Found) bool { return f.Queued != nil })
}

// many returns n payloads, some with a Meta.
func many(n int) []core.Payload {
	var all []core.Payload
	for i := range n {
		p := env.Pay(fmt.Sprintf("%04d", i), float64(i))
		if i%3 == 0 {
			p.Meta = []byte{byte(i)}
		}
		all = append(all, p)
	}
	return all
}
