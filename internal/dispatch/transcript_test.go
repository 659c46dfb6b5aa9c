package dispatch_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/transcripts"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts replays the transcripts. What follows from an event are steps and actions.
func TestTranscripts(t *testing.T) {
	transcripts.Compare(t, "testdata", *update, func(t *testing.T, transcript string) string {
		w := newScript(t)
		transcripts.Replay(&w.out, transcript, func(name string, args []string) {
			w.event(name, args)
			w.actions()
		})
		return w.out.String()
	})
}

// script is a node that a transcript works.
type script struct {
	t       *testing.T
	out     strings.Builder
	node    dispatch.Node
	now     time.Duration
	pools   map[string]*dispatch.Pool
	names   []string
	lanes   []*scriptLane
	shards  map[string]*scriptShard
	limits  map[string]*dispatch.Limit
	permits map[string]*dispatch.Permits
	calls   map[string]dispatch.PermitCall
	build   core.SchedulerFunc
}

type scriptLane struct {
	dispatch.Lane
	number int
	pool   *dispatch.Pool
	asks   *dispatch.Question
}

type scriptShard struct {
	*dispatch.Shard
	name string
	pool *dispatch.Pool
	view dispatch.View
}

// scriptStart is the time 0 of transcripts, for this process and the store.
var scriptStart = time.Unix(1_000_000, 0)

func newScript(t *testing.T) *script {
	return &script{
		t:     t,
		node:  dispatch.Node{Config: dispatch.Config{Owner: "self", PollInterval: time.Second, LeaseTTL: 30 * time.Second, Prefetch: 256}},
		pools: map[string]*dispatch.Pool{}, shards: map[string]*scriptShard{}, limits: map[string]*dispatch.Limit{},
		permits: map[string]*dispatch.Permits{}, calls: map[string]dispatch.PermitCall{}, build: core.Lag,
	}
}

func (w *script) time() dispatch.Now {
	local := scriptStart.Add(w.now)
	return dispatch.Now{Local: local, Store: core.Instant(local.UnixMicro())}
}

func (w *script) say(format string, args ...any) { fmt.Fprintf(&w.out, "  "+format+"\n", args...) }

func (w *script) int(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *script) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// head returns the head that is due at a time; "none" is no head.
func (w *script) head(s string) core.Head {
	if s == "none" {
		return core.Head{}
	}
	return core.Head{Due: core.Instant(scriptStart.Add(w.duration(s)).UnixMicro()), OK: true}
}

func (w *script) event(name string, args []string) {
	events := map[string]func(args []string){
		"at": w.at, "prefetch": w.prefetch, "scheduler": w.scheduler, "limit": w.limit, "permits": w.newPermits, "rate": w.rate, "ask": w.ask, "slots": w.slots, "slow-down": w.slowDown, "pool": w.pool,
		"shards": w.setShards, "next": w.next, "answer": w.answer, "ended": w.ended, "taken": w.taken, "show": w.show,
		"carry": w.carry, "answered": w.answered, "lost": w.lost, "await": w.await, "hand": w.hand, "look": w.look, "lanes": w.setLanes,
		"by-hand": func([]string) { w.node.ByHand = true }, "stop": func([]string) { w.node.Stop() }, "plan": w.plan, "granted": w.granted, "failed": w.failed, "freed": w.freed,
		"drop": w.drop, "return": w.giveBack, "full": w.full,
	}
	event := events[name]
	if event == nil {
		w.t.Fatalf("unknown event %q", name)
	}
	event(args)
}

// actions prints what the caller is to do.
func (w *script) actions() {
	for _, a := range w.node.Actions(nil) {
		switch a.Kind {
		case dispatch.WakeLane:
			w.say("wake lane %d", a.Lane.Of.(*scriptLane).number)
		case dispatch.Turn:
			w.say("turn of %s for %d", a.Shard.Of.(*scriptShard).name, a.Shard.Granted())
		case dispatch.ReviewPermits:
			w.say("review permits")
		case dispatch.ReviewSlots:
			w.say("review slots")
		case dispatch.Look:
			w.say("look at %v", a.Pool.LookAt().Sub(scriptStart))
		}
	}
}

func (w *script) at(args []string) { w.now = w.duration(args[0]) }

func (w *script) prefetch(args []string) { w.node.Prefetch = w.int(args[0]) }

func (w *script) scheduler(args []string) {
	w.build = map[string]core.SchedulerFunc{
		"lag": core.Lag, "seq": core.Seq, "user": func(core.SchedulerConfig) core.Scheduler { return onlyNext{} },
	}[args[0]]
}

// onlyNext is a user's scheduler, whose answers are in the transcript.
type onlyNext struct{ core.Scheduler }

// limit takes a queue and the bound of the lanes, which may replace another one.
func (w *script) limit(args []string) {
	w.limitOf(args[0]).Change(dispatch.Bounds{Lanes: w.int(args[1])}, w.permits[args[0]], w.time())
}

// newPermits takes a queue, the number of its permits and, optionally, the bound of the lanes. They
// may replace others.
func (w *script) newPermits(args []string) {
	b := dispatch.Bounds{Total: w.int(args[1])}
	if len(args) > 2 {
		b.Lanes = w.int(args[2])
	}
	if w.permits[args[0]] == nil {
		w.permits[args[0]] = w.node.NewPermits()
	}
	w.limitOf(args[0]).Change(b, w.permits[args[0]], w.time())
}

// rate takes a queue and the interval of its rate.
func (w *script) rate(args []string) {
	w.limitOf(args[0]).Change(dispatch.Bounds{Interval: w.duration(args[1])}, nil, w.time())
}

// ask lets a queue ask for slots, if it wants some.
func (w *script) ask(args []string) {
	if want, call, wait := w.limitOf(args[0]).Slots().Plan(w.time()); call {
		w.say("asks for %d slots", want)
	} else {
		w.say("asks again in %v", wait)
	}
}

// slots takes a queue, how many slots it has asked for, how many it is granted, and the first.
func (w *script) slots(args []string) {
	w.limitOf(args[0]).Slots().Granted(time.Millisecond, w.int(args[1]), w.int(args[2]), scriptStart.Add(w.duration(args[3])), w.time())
}

// slowDown takes a queue and the time until which its handler wants a pause.
func (w *script) slowDown(args []string) {
	w.limitOf(args[0]).Slots().Stop(scriptStart.Add(w.duration(args[1])), w.time())
}

func (w *script) limitOf(queue string) *dispatch.Limit {
	if w.limits[queue] == nil {
		w.limits[queue] = w.node.NewLimit()
	}
	return w.limits[queue]
}

// pool takes a name and the number of lanes.
func (w *script) pool(args []string) {
	p := w.node.NewPool(args[0], w.int(args[1]))
	w.pools[args[0]] = p
	w.names = append(w.names, args[0])
	w.addLanes(p, w.int(args[1]))
}

func (w *script) addLanes(p *dispatch.Pool, n int) {
	for range n {
		l := &scriptLane{number: len(w.lanes), pool: p}
		l.Of = l
		w.lanes = append(w.lanes, l)
	}
}

func (w *script) setLanes(args []string) {
	p := w.pools[args[0]]
	more := p.SetLanes(w.int(args[1]))
	w.say("%d more lanes", more)
	w.addLanes(p, more)
}

// setShards takes a pool and the names of its shards.
func (w *script) setShards(args []string) {
	p := w.pools[args[0]]
	var shards []*dispatch.Shard
	c := core.SchedulerConfig{PollInterval: w.node.PollInterval}
	for _, name := range args[1:] {
		queue, number, _ := strings.Cut(name, "/")
		s := w.shards[name]
		if s == nil {
			s = &scriptShard{name: name, pool: p, view: dispatch.View{Idle: true}}
			s.Shard = p.NewShard(s, 1, w.limitOf(queue))
			w.shards[name] = s
		}
		shards = append(shards, s.Shard)
		c.Shards = append(c.Shards, core.Shard{Queue: queue, Index: w.int(number)})
	}
	order, _ := dispatch.NewOrder(w.build, c)
	p.SetShards(shards, order, w.time())
}

// change changes what a shard shows, and returns the shard and its view.
func (w *script) change(name string, args []string) (*scriptShard, dispatch.View) {
	s := w.shards[name]
	v := &s.view
	if v.Free == 0 && v.Stock == 0 {
		v.Free, v.Stock = math.MaxInt32, 256
	}

	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "waiting":
			v.Waiting = w.int(value)
			v.Run = core.Head{Due: w.time().Store, OK: v.Waiting > 0}
			v.Idle = v.Waiting == 0
		case "free":
			v.Free = w.int(value)
		case "stock":
			v.Stock = w.int(value)
		case "claim":
			v.Claim = w.head(value)
		case "idle":
			v.Idle = true
		case "busy":
			v.Idle = false
		default:
			w.t.Fatalf("unknown argument %q", arg)
		}
	}
	return s, *v
}

func (w *script) show(args []string) {
	s, v := w.change(args[0], args[1:])
	s.pool.Show(s.Shard, v, false, w.time())
}

func (w *script) await(args []string) {
	s := w.shards[args[0]]
	s.pool.Await(s.Shard, args[1] == "on", w.time())
}

// next lets lanes ask what to do.
func (w *script) next(args []string) {
	for _, arg := range args {
		l := w.lanes[w.int(arg)]
		w.step(l, l.pool.Next(&l.Lane, w.time()))
	}
}

// answer takes a lane and what the scheduler answers: the number of a shard or -1, for how long to
// wait, and whether to sleep.
func (w *script) answer(args []string) {
	l := w.lanes[w.int(args[0])]
	c := core.Choice{Index: w.int(args[1]), Sleep: slices.Contains(args, "sleep")}
	if len(args) > 2 {
		c.Wait = w.duration(args[2])
	}
	w.step(l, l.pool.Answer(&l.Lane, l.asks, c, w.time()))
}

// step prints what a lane does.
func (w *script) step(l *scriptLane, step dispatch.Step) {
	switch {
	case step.Run != nil:
		w.say("lane %d runs %s", l.number, step.Run.Of.(*scriptShard).name)
	case step.End:
		w.say("lane %d ends", l.number)
	case step.Ask != nil:
		l.asks = step.Ask
		var heads []string
		for _, h := range step.Ask.Heads {
			if !h.OK {
				heads = append(heads, "none")
				continue
			}
			heads = append(heads, h.Due.Sub(core.Instant(scriptStart.UnixMicro())).String())
		}
		w.say("lane %d asks: heads %v, ends %v", l.number, heads, step.Ask.Ends)
	default:
		w.say("lane %d waits", l.number)
		l.pool.Wait(&l.Lane, w.time())
	}
}

// ended takes a lane, whether its batch succeeded ("ok", "failed"; "none" is no batch) and how long
// it took.
func (w *script) ended(args []string) {
	l := w.lanes[w.int(args[0])]
	l.pool.BatchEnded(&l.Lane, args[1] != "none", args[1] == "ok", w.duration(args[2]), w.time())
}

// taken takes a shard, "batch" or "none", and the shard's view.
func (w *script) taken(args []string) {
	s, v := w.change(args[0], args[2:])
	s.pool.Taken(s.Shard, true, args[1] == "batch", v, w.time())
}

func (w *script) carry(args []string) {
	s := w.shards[args[0]]
	w.say("claims %d", s.pool.Carry(s.Shard, w.time()))
}

// answered takes a shard, how many batches its turn has brought, "more" or "all", and its view.
func (w *script) answered(args []string) {
	s, v := w.change(args[0], args[3:])
	s.pool.Answered(s.Shard, w.int(args[1]), args[2] == "more", v, w.time())
}

func (w *script) lost(args []string) {
	s, v := w.change(args[0], args[1:])
	s.pool.Lost(s.Shard, v, w.time())
}

func (w *script) hand(args []string) {
	s := w.shards[args[0]]
	s.pool.GrantByHand(s.Shard, w.int(args[1]))
}

func (w *script) look(args []string) { w.pools[args[0]].Look(w.time()) }

func (w *script) full(args []string) { w.say("%v", w.pools[args[0]].Full()) }

func (w *script) plan(args []string) {
	c, call, wait := w.permits[args[0]].Plan(w.time().Local, w.node.PollInterval)
	if call {
		w.calls[args[0]] = c
		w.call(c)
	}
	w.say("again in %v", wait)
}

func (w *script) call(c dispatch.PermitCall) {
	w.say("call %d: hold %d of %d, want %d", c.Attempt, c.Hold, c.Limit, c.Want)
}

// granted takes a queue, how many permits the server holds, and the other servers that hold or want
// some, as HELD/WANT.
func (w *script) granted(args []string) {
	c := w.calls[args[0]]
	held := w.int(args[1])
	holders := []core.PermitHolder{{Owner: "self", Held: held, Want: c.Want}}
	for i, arg := range args[2:] {
		has, wants, _ := strings.Cut(arg, "/")
		holders = append(holders, core.PermitHolder{Owner: fmt.Sprint("other", i), Held: w.int(has), Want: w.int(wants)})
	}
	if !w.permits[args[0]].Answered(c, held, holders, w.time().Store, w.time()) {
		w.say("permits were lost")
	}
}

func (w *script) failed(args []string) {
	w.permits[args[0]].Failed(true, w.time().Local.Add(w.duration(args[1])))
}

func (w *script) freed(args []string) { w.permits[args[0]].Freed() }

func (w *script) drop(args []string) {
	for _, s := range w.permits[args[0]].Drop() {
		w.say("cancel %s", s.Of.(*scriptShard).name)
	}
}

func (w *script) giveBack(args []string) {
	if c, ok := w.permits[args[0]].Return(w.time().Local); ok {
		w.call(c)
	}
}
