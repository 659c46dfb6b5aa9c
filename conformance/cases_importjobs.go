package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleImportJobs   = "Import adds jobs of another queue to this one, unchanged: payloads with Score and Meta, and their State"
	ruleImportState  = "RULES 2: a held job stays held, else the state of the job with more failures stays, on a tie that of the queued job; of two fresh jobs the earlier time"
	ruleOnlyPaused   = "ImportRequest: OnlyPaused refuses a shard that is not paused with ErrNotPaused, and nothing is stored"
	ruleImportAgain  = "Import: to repeat a call with jobs changes nothing more"
	ruleImportBeside = "Import: a claimed job stays, and the imported one waits behind it; dead letters stay"
)

func importJobsCases() []namedCase {
	return []namedCase{
		{"stores every field of a job", ruleImportJobs, importJobsStores},
		{"restores deleted jobs unchanged", ruleImportJobs, importJobsRestores},
		{"merges payloads with those of a queued job", "RULES 2: payloads merge by the queue's rule; on a tie the payload that was there stays", importJobsMerge},
		{"keeps the state of the job with more failures", ruleImportState, importJobsState},
		{"keeps the larger Recoveries and the smaller FirstPush", "RULES 2: Recoveries: the larger. FirstPush: the smaller", importJobsUnite},
		{"accepts a job in parts", "ImportRequest: a job with more payloads comes in parts, each with its State", importJobsParts},
		{"changes nothing when it is repeated", ruleImportAgain, importJobsRepeat},
		{"makes its jobs run", ruleImportJobs, importJobsRun},
		{"runs a recovered job alone", "RULES 4: a job with 2 recoveries is claimed alone", importJobsAlone},
		{"waits behind a claimed job", ruleImportBeside, importJobsBesideClaim},
		{"leaves dead letters alone", ruleImportBeside, importJobsBesideDead},
		{"imports into a paused queue", "Pause stops claims only", importJobsPaused},
		{"imports into a shard that must be paused only while it is", ruleOnlyPaused, importOnlyPaused},
		{"keeps a held job held", ruleImportState, importJobsHeld},
		{"refuses a whole request for one invalid job", ruleImportWhole, importJobsRefused},
		{"refuses more than a step moves", ruleImportWhole, importJobsTooMuch},
		{"refuses another layout", "Import: ErrShardCountMismatch for a layout that is not the queue's, with nothing stored", importJobsLayout},
	}
}

func (e *env) importJobs(jobs ...core.Job) ports.ImportRequest {
	r := e.importRequest()
	r.Jobs = jobs
	return r
}

// bringInJobs imports jobs. If a call has reached only some, it continues with the others.
func (e *env) bringInJobs(jobs ...core.Job) {
	e.tb.Helper()
	for left := jobs; len(left) > 0; {
		reply, err := e.store.Import(e.ctx, e.importJobs(left...))
		e.must(err, "Import")
		e.same("how many jobs are handled, of those reached", reply.Handled, reply.Reached)
		if reply.Reached == 0 {
			e.tb.Fatalf("Import has reached none of %d jobs\nthe rule: %s", len(left), e.rule)
		}
		left = left[reply.Reached:]
	}
}

// retrying is the state of a job that has failed.
func retrying(at core.Instant, count int) core.State {
	return core.State{PerformAt: at, RetryCount: count, FirstPush: start, Error: fmt.Sprint("failure ", count)}
}

// oddJobs returns jobs with values that a careless store loses.
func oddJobs() []core.Job {
	meta := func(p core.Payload, meta string) core.Payload { p.Meta = []byte(meta); return p }
	return []core.Job{
		job("a", core.State{RetryCount: core.FreshRetryCount}, pay("", 0)),
		job("b", core.State{PerformAt: start - 1, RetryCount: 24, Recoveries: 1, FirstPush: 12345, Error: "\u00e9\n\t\u2028"},
			pay("p", -math.MaxFloat64), meta(pay("\x00\xff", -1), "\x00m"), pay("q", math.SmallestNonzeroFloat64),
			meta(pay("r", 0.1), strings.Repeat("m", core.MaxMetaBytes)), pay("s", 1.7e9+1e-6), pay("t", 1<<53), pay("u", math.MaxFloat64)),
		job("c", core.State{PerformAt: start.Add(time.Hour), RetryCount: core.FreshRetryCount, Recoveries: 5, FirstPush: start.Add(time.Minute), Error: "of the rest"},
			meta(pay("p", 1), "only")),
		job("d", retrying(start.Add(time.Hour), 3), many(20)...),
		job("e", core.State{PerformAt: core.MaxInstant, RetryCount: math.MaxInt32, Recoveries: math.MaxInt32, FirstPush: core.MaxInstant,
			Error: strings.Repeat("e", core.MaxErrorBytes)}, pay("p", 1)),
	}
}

func importJobsStores(e *env) {
	jobs := oddJobs()
	e.bringInJobs(jobs...)
	for _, j := range jobs {
		j.FirstPush = min(j.FirstPush, e.now())
		e.same("the job "+j.ID, e.queued(j.ID), j)
	}
	e.same("the queued by time", e.queuedIDs(), []string{"a", "b", "c", "d", "e"})
	counts := e.counts()
	e.same("fresh, retrying and dead", [3]int64{counts.Fresh, counts.Retrying, counts.Dead}, [3]int64{2, 3, 0})
	j := job("f", fresh(start), core.Payload{Data: []byte("p"), Score: math.Copysign(0, -1)})
	e.bringInJobs(j)
	e.same("the score -0", math.Signbit(e.queued("f").Payloads[0].Score), false)
	e.same("the caller's, which is only read", math.Signbit(j.Payloads[0].Score), true)
	reply, err := e.store.Import(e.ctx, e.importJobs(job("g", fresh(start), pay("p", 1))))
	e.must(err, "Import")
	e.reported("the reply", reply, ports.StepReply{Handled: 1, Reached: 1, Now: e.now()})
	recount := e.recount(0, func() {})
	e.same("the counts, one by one", recount.After, recount.Before)
}

func importJobsRestores(e *env) {
	e.forget()
	e.declareWith(ports.DeclareRequest{Queue: orders, Shards: 1, IndexIDs: true})
	failAll(e, "x", "y")
	e.push(core.Entry{ID: "meta", Payload: core.Payload{Data: []byte("p"), Score: 2, Meta: []byte("m")}})
	pushPayloads(e, 20, "large")
	before := e.snapshot(orders)
	var jobs []core.Job
	for _, id := range e.queuedIDs() {
		jobs = append(jobs, e.queued(id))
	}
	e.byIDs(e.store.Delete, e.queuedIDs()...)
	e.clock.Advance(time.Minute)
	e.bringInJobs(jobs...)
	e.clock.Set(start.Time())
	e.same("the queue", e.snapshot(orders), before)
}

func importJobsMerge(e *env) {
	tagged := core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("there")}
	untagged := core.Payload{Data: []byte("n"), Score: 5}
	for _, more := range []int{0, 30} {
		id := fmt.Sprint("with ", more, " more")
		there := job(id, fresh(start), pay("p", 1), pay("q", 2), pay("r", 3), tagged, untagged)
		coming := job(id, fresh(start), pay("r", 2.5), pay("p", 3), pay("o", 4), core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("coming")},
			core.Payload{Data: []byte("n"), Score: 5, Meta: []byte("coming")})
		for i := range more {
			there.Payloads = append(there.Payloads, pay(fmt.Sprint("more ", 100+i), float64(100+i)))
		}
		e.bringInJobs(there)
		e.bringInJobs(coming)
		want := there
		want.Payloads = append([]core.Payload{pay("p", 1), pay("q", 2), pay("r", 2.5), pay("o", 4), tagged, untagged}, there.Payloads[5:]...)
		e.same("the job", e.queued(id), want)
		lower := job(id, fresh(start), core.Payload{Data: []byte("m"), Score: 4.5}, core.Payload{Data: []byte("n"), Score: 4.5, Meta: []byte("new")})
		e.bringInJobs(lower)
		e.same("the Metas that came with smaller scores", e.queued(id).Payloads[4:6], lower.Payloads)
	}
}

func importJobsState(e *env) {
	later := start.Add(time.Hour)
	for name, c := range map[string]struct{ there, coming, want core.State }{
		"a fresh one onto a fresh one":           {fresh(later), fresh(start), fresh(start)},
		"a later one onto a fresh one":           {fresh(start), fresh(later), fresh(start)},
		"a failed one onto a fresh one":          {fresh(start), retrying(later, 2), retrying(later, 2)},
		"a fresh one onto a failed one":          {retrying(later, 2), fresh(start), retrying(later, 2)},
		"one with more failures":                 {retrying(later, 2), retrying(start, 3), retrying(start, 3)},
		"one with fewer failures":                {retrying(later, 2), retrying(start, 1), retrying(later, 2)},
		"another one with as many failures":      {retrying(later, 2), core.State{PerformAt: start, RetryCount: 2, FirstPush: start, Error: "other"}, retrying(later, 2)},
		"a fresh one with an error onto a fresh": {fresh(later), core.State{PerformAt: start, RetryCount: -1, FirstPush: start, Error: "of the rest"}, fresh(start)},
	} {
		for _, more := range []int{0, 1, 20} {
			id := fmt.Sprint(name, " ", more)
			e.bringInJobs(job(id, c.there, pay("p", 1)))
			coming := job(id, c.coming, append([]core.Payload{pay("p", 0.5)}, many(20)[20-more:]...)...)
			slices.SortFunc(coming.Payloads, core.Payload.Compare)
			e.bringInJobs(coming)
			e.same("the state after "+name, e.queued(id).State, c.want)
			e.same("how many payloads it has", len(e.queued(id).Payloads), 1+more)
		}
	}
	recount := e.recount(0, func() {})
	e.same("the counts, one by one", recount.After, recount.Before)
}

func importJobsUnite(e *env) {
	state := func(first core.Instant, recoveries int) core.State {
		return core.State{PerformAt: start, RetryCount: core.FreshRetryCount, FirstPush: first, Recoveries: recoveries}
	}
	e.bringInJobs(job("a", state(start, 1), pay("p", 1)), job("b", state(start.Add(time.Second), 3), pay("p", 1)))
	e.bringInJobs(job("a", state(start.Add(time.Second), 4), pay("p", 1)), job("b", state(start, 2), pay("p", 1)))
	e.same("an older one", e.queued("a").State, state(start, 4))
	e.same("a younger one", e.queued("b").State, state(start, 3))
	e.bringInJobs(job("c", state(start.Add(time.Hour), 0), pay("p", 1)))
	e.same("one from a clock that is ahead", e.queued("c").State, state(e.now(), 0))
}

func importJobsParts(e *env) {
	all := make([]core.Payload, 2500)
	for i := range all {
		all[i] = core.Payload{Data: fmt.Appendf(nil, "%05d", i), Score: float64(i)}
		if i%100 == 7 {
			all[i].Meta = []byte("meta")
		}
	}
	want := job("a", retrying(start, 3), all...)
	for range 2 {
		for part := range slices.Chunk(all, core.MaxTurnPayloads) {
			e.bringInJobs(job("a", want.State, part...))
		}
		e.same("the job", e.queued("a"), want)
	}
	e.same("how many are retrying", e.counts().Retrying, int64(1))
}

func importJobsRepeat(e *env) {
	jobs := oddJobs()
	e.bringInJobs(jobs...)
	e.clock.Advance(time.Minute)
	e.unchanged("a repeated Import", func() {
		e.bringInJobs(jobs...)
		e.bringInJobs(job("d", retrying(start.Add(time.Hour), 3), many(20)[7:9]...))
	})
}

func importJobsRun(e *env) {
	before := e.heads(e.shard)
	e.same("whether there is a head", before[0].OK, false)
	want := job("a", retrying(start-5, 2), twoPayloads()...)
	e.bringInJobs(want, job("b", fresh(start.Add(time.Hour)), pay("p", 1)))
	e.same("the head", e.heads(e.shard)[0].Due, start-5)
	h := e.acquire("n1")
	c := h.one()
	e.same("the claimed job", c.Job, want)
	e.same("how many more can be claimed", len(h.claim(2)), 0)
	h.settle(done(c))
	e.clock.Advance(time.Hour)
	e.same("the next", e.heads(e.shard)[0].Due, start.Add(time.Hour))
}

func importJobsAlone(e *env) {
	e.pushIDs("x", "y")
	state := fresh(start.Add(-time.Hour))
	state.Recoveries = core.AloneRecoveries
	e.bringInJobs(job("a", state, pay("p", 1)))
	h := e.acquire("n1")
	got := h.claim(3)
	e.same("how many are claimed", len(got), 1)
	e.same("which", got[0].ID, "a")
}

func importJobsBesideClaim(e *env) {
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	e.bringInJobs(job("a", retrying(start.Add(-time.Hour), 9), pay("q", 2)), job("b", fresh(start.Add(-time.Hour)), pay("p", 1)))
	e.same("the claimed job", e.claimed("a"), c)
	e.same("the queued one", e.queued("a"), job("a", retrying(start.Add(-time.Hour), 9), pay("q", 2)))
	e.same("which can be claimed", h.one().ID, "b")
	h.settle(failed(c, "boom", time.Minute))
	merged := e.queued("a")
	e.same("the payloads once the claimed job has failed", merged.Payloads, []core.Payload{pay("p", 1), pay("q", 2)})
	e.same("its retries, which are the returning job's", merged.RetryCount, 0)
}

func importJobsBesideDead(e *env) {
	buryAll(e, "a")
	before := e.deadLetter("a")
	e.bringInJobs(job("a", fresh(start), pay("p", 1), pay("z", 9)))
	e.same("the dead letter", e.deadLetter("a"), before)
	e.same("the job", e.queued("a").Payloads, []core.Payload{pay("p", 1), pay("z", 9)})
}

func importJobsPaused(e *env) {
	e.pause(orders)
	want := job("a", retrying(start-5, 2), twoPayloads()...)
	e.bringInJobs(want)
	h := e.acquire("n1")
	e.same("how many can be claimed", len(h.claim(1)), 0)
	e.same("the job", e.queued("a"), want)
	e.resume(orders)
	e.same("the claimed job", h.one().Job, want)
}

func importOnlyPaused(e *env) {
	for what, r := range map[string]ports.ImportRequest{
		"jobs": e.importJobs(job("a", fresh(start), pay("p", 1))), "nothing": e.importJobs(),
		"dead letters": {Shard: e.shard, Shards: 1, Generation: e.declared[orders].Generation, DeadLetters: []core.DeadLetter{letter("b", 1, pay("p", 1))}},
	} {
		r.OnlyPaused = true
		e.importRefused(what+" into a shard that runs", r, ports.ErrNotPaused)
		e.pause(orders)
		reply, err := e.store.Import(e.ctx, r)
		e.must(err, "Import of "+what+" into a paused shard")
		e.reported("how many are handled", reply.Handled, len(r.Jobs)+len(r.DeadLetters))
		e.resume(orders)
		other := r
		other.Generation++
		_, err = e.store.Import(e.ctx, other)
		e.refused("Import with another layout into a shard that runs", err, ports.ErrShardCountMismatch)
	}
}

// importJobsHeld imports held jobs with RetryCount 0, as after a recovery, so that RetryCount does
// not decide which state stays.
func importJobsHeld(e *env) {
	held := core.State{PerformAt: core.MaxInstant, FirstPush: start, Error: "gone"}
	longer := held
	longer.RetryCount = 2
	for name, c := range map[string]struct{ there, coming, want core.State }{
		"one with a failure onto a held one": {held, retrying(start, 1), held},
		"a held one onto one with a failure": {retrying(start, 1), held, held},
		"a held one onto a fresh one":        {fresh(start), held, held},
		"a fresh one onto a held one":        {held, fresh(start), held},
		"a held one onto one held longer":    {longer, held, longer},
		"one held longer onto a held one":    {held, longer, longer},
	} {
		for _, more := range []int{0, 20} {
			id := fmt.Sprint(name, " ", more)
			coming := job(id, c.coming, append([]core.Payload{pay("p", -1)}, many(more)...)...)
			e.bringInJobs(job(id, c.there, pay("p", 1)))
			for range 2 {
				e.bringInJobs(coming)
				e.same("the job after "+name, e.queued(id), job(id, c.want, coming.Payloads...))
			}
		}
	}
	recount := e.recount(0, func() {})
	e.same("the counts, one by one", recount.After, recount.Before)
	e.same("what is claimed", e.acquire("n1").claim(5), nil)
}

func importJobsRefused(e *env) {
	good := job("a", fresh(start), pay("p", 1))
	change := func(change func(j *core.Job)) core.Job {
		j := job("b", fresh(start), pay("p", 1))
		change(&j)
		return j
	}
	for name, bad := range map[string]struct {
		job  core.Job
		want error
	}{
		"no id":                              {change(func(j *core.Job) { j.ID = "" }), core.ErrInvalidID},
		"a control character":                {change(func(j *core.Job) { j.ID = "a\n" }), core.ErrInvalidID},
		"an id twice":                        {change(func(j *core.Job) { j.ID = "a" }), ports.ErrInvalidRequest},
		"no payloads":                        {change(func(j *core.Job) { j.Payloads = nil }), ports.ErrInvalidRequest},
		"a payload twice":                    {change(func(j *core.Job) { j.Payloads = []core.Payload{pay("p", 1), pay("p", 2)} }), ports.ErrInvalidRequest},
		"payloads upside down":               {change(func(j *core.Job) { j.Payloads = []core.Payload{pay("p", 2), pay("q", 1)} }), ports.ErrInvalidRequest},
		"a score that is NaN":                {change(func(j *core.Job) { j.Payloads[0].Score = math.NaN() }), core.ErrInvalidScore},
		"a long Meta":                        {change(func(j *core.Job) { j.Payloads[0].Meta = make([]byte, core.MaxMetaBytes+1) }), core.ErrInvalidPayload},
		"a PerformAt below 0":                {change(func(j *core.Job) { j.PerformAt = -1 }), core.ErrInvalidTime},
		"a PerformAt after the last instant": {change(func(j *core.Job) { j.PerformAt = core.MaxInstant + 1 }), core.ErrInvalidTime},
		"a FirstPush below 0":                {change(func(j *core.Job) { j.FirstPush = -1 }), core.ErrInvalidTime},
		"a FirstPush after the last instant": {change(func(j *core.Job) { j.FirstPush = core.MaxInstant + 1 }), core.ErrInvalidTime},
		"retries below -1":                   {change(func(j *core.Job) { j.RetryCount = -2 }), ports.ErrInvalidRequest},
		"recoveries below 0":                 {change(func(j *core.Job) { j.Recoveries = -1 }), ports.ErrInvalidRequest},
		"too many retries":                   {change(func(j *core.Job) { j.RetryCount = math.MaxInt32 + 1 }), ports.ErrInvalidRequest},
		"too many recoveries":                {change(func(j *core.Job) { j.Recoveries = math.MaxInt32 + 1 }), ports.ErrInvalidRequest},
		"a long error":                       {change(func(j *core.Job) { j.Error = strings.Repeat("e", core.MaxErrorBytes+1) }), ports.ErrInvalidRequest},
		"an error with NUL":                  {change(func(j *core.Job) { j.Error = "\x00" }), ports.ErrInvalidRequest},
	} {
		e.importRefused(name, e.importJobs(good, bad.job), bad.want)
	}
	both := e.importJobs(good)
	both.DeadLetters = []core.DeadLetter{letter("b", 1, pay("p", 1))}
	e.importRefused("jobs beside dead letters", both, ports.ErrInvalidRequest)
}

func importJobsTooMuch(e *env) {
	var jobs []core.Job
	for i := range ports.MaxStep + 1 {
		jobs = append(jobs, job(fmt.Sprintf("%04d", i), fresh(start), pay("p", 1)))
	}
	for name, r := range map[string]ports.ImportRequest{
		"too many jobs":     e.importJobs(jobs...),
		"too many payloads": e.importJobs(job("a", fresh(start), many(core.MaxTurnPayloads)...), job("b", fresh(start), pay("p", 1))),
		"too many bytes":    e.importJobs(job("a", fresh(start), sized(core.MaxStepBytes, 1)), job("b", fresh(start), pay("p", 1))),
	} {
		e.importRefused(name, r, ports.ErrInvalidRequest)
	}
	e.bringInJobs(jobs[:ports.MaxStep]...)
	e.bringInJobs(job("a", fresh(start), many(core.MaxTurnPayloads)...))
	e.same("how many are queued", e.counts().Fresh, int64(ports.MaxStep+1))
}

func importJobsLayout(e *env) {
	e.declare("wide", 2)
	q, s := e.declared["wide"], core.Shards("wide", 2)
	own, other := job(idsOf(s[0], 2, 1)[0], fresh(start), pay("p", 1)), job(idsOf(s[1], 2, 1)[0], fresh(start), pay("p", 1))
	for name, c := range map[string]struct {
		change func(r *ports.ImportRequest)
		want   error
	}{
		"another generation": {func(r *ports.ImportRequest) { r.Generation++ }, ports.ErrShardCountMismatch},
		"an unknown queue":   {func(r *ports.ImportRequest) { r.Shard.Queue = "never" }, ports.ErrUnknownQueue},
		"an id of another":   {func(r *ports.ImportRequest) { r.Jobs = append(r.Jobs, other) }, ports.ErrInvalidRequest},
	} {
		r := ports.ImportRequest{Shard: s[0], Shards: 2, Generation: q.Generation, Jobs: []core.Job{own}}
		c.change(&r)
		_, err := e.store.Import(e.ctx, r)
		e.refused("Import with "+name, err, c.want)
		if found := e.findIn("wide", own.ID); found.Queued != nil {
			e.errorf("Import with %s has stored %+v", name, found.Queued)
		}
	}
	_, err := e.store.Import(e.ctx, ports.ImportRequest{Shard: s[1], Shards: 2, Generation: q.Generation, Jobs: []core.Job{other}})
	e.must(err, "Import into the second shard")
	e.same("its job", e.findIn("wide", other.ID).Queued, &ports.JobView{Job: other, Count: len(other.Payloads)})
}
