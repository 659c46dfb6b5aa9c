package engine

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/clock"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/transcripts"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// replayAll replays the transcripts of a part of the shard. What follows from an event is what the
// part returns, and what has changed of its state.
func replayAll(t *testing.T, part string, begin func(w *script)) {
	transcripts.Compare(t, filepath.Join("testdata", part), *update, func(t *testing.T, transcript string) string {
		w := &script{t: t, now: scriptStart, shown: map[string]string{}}
		begin(w)
		transcripts.Replay(&w.out, transcript, w.event)
		return w.out.String()
	})
}

// script is the state of a transcript. events are those of the part, and show shows its state.
type script struct {
	t      *testing.T
	out    strings.Builder
	now    time.Time
	shown  map[string]string
	events map[string]func(arguments)
	show   func()
}

// scriptStart is the time 0 of transcripts, for this process and the store.
var scriptStart = time.Unix(1_000_000, 0)

// scriptTTL and scriptPoll are the settings of the servers in transcripts.
const (
	scriptTTL  = 30 * time.Second
	scriptPoll = 5 * time.Second
)

// event lets something happen, and shows what has changed.
func (w *script) event(name string, words []string) {
	args := newArguments(words)
	switch event := w.events[name]; {
	case name == "at":
		w.now = scriptStart.Add(w.duration(args.words[0]))
	case event == nil:
		w.t.Fatalf("unknown event %q", name)
	default:
		event(args)
	}
	w.show()
}

func (w *script) say(format string, args ...any) { fmt.Fprintf(&w.out, "  "+format+"\n", args...) }

// changed says a part of the state if it has changed.
func (w *script) changed(name, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); w.shown[name] != text {
		w.shown[name] = text
		w.say("%s: %s", name, text)
	}
}

func (w *script) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *script) int(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// instant returns the present time of the store.
func (w *script) instant() core.Instant { return core.InstantOf(w.now) }

// head returns the head that is due at a time; "" is no head.
func (w *script) head(s string) core.Head {
	if s == "" {
		return core.Head{}
	}
	return core.Head{Due: core.InstantOf(scriptStart.Add(w.duration(s))), OK: true}
}

// arguments are those of an event: words, and options such as head=1s.
type arguments struct {
	words   []string
	options map[string]string
}

func newArguments(fields []string) arguments {
	a := arguments{options: map[string]string{}}
	for _, f := range fields {
		if name, value, ok := strings.Cut(f, "="); ok {
			a.options[name] = value
		} else {
			a.words = append(a.words, f)
			a.options[f] = "yes"
		}
	}
	return a
}

// has reports whether a word or an option is there.
func (a arguments) has(name string) bool { return a.options[name] != "" }

// list returns the values of an option, which commas separate.
func (a arguments) list(name string) []string {
	if !a.has(name) {
		return nil
	}
	return strings.Split(a.options[name], ",")
}

func (w *script) positions(values []string) (positions []int) {
	for _, v := range values {
		positions = append(positions, w.int(v))
	}
	return positions
}

// claimNamed returns a claim of a job. Each * that follows its id is one recovery.
func claimNamed(name string) core.Claim {
	id := strings.TrimRight(name, "*")
	return core.Claim{
		Job: core.Job{
			ID:       id,
			State:    core.State{RetryCount: core.FreshRetryCount, Recoveries: len(name) - len(id)},
			Payloads: []core.Payload{{Data: []byte("1")}, {Data: []byte("2")}},
		},
		Receipt: core.Receipt{Token: 1, Number: 1},
	}
}

func claimsNamed(names []string) (claims []core.Claim) {
	for _, name := range names {
		claims = append(claims, claimNamed(name))
	}
	return claims
}

// claimNames is the inverse of claimsNamed.
func claimNames(claims []core.Claim) string {
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = c.ID + strings.Repeat("*", c.Recoveries)
	}
	return joinNames(names)
}

func refNames(refs []core.ClaimRef) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.ID
	}
	return joinNames(names)
}

// settledNames are jobs with how a turn settles them.
func settledNames(settled []core.Settlement) string {
	names := make([]string, len(settled))
	for i := range settled {
		how := "drop"
		switch s := &settled[i]; {
		case s.Processed:
			how = "done"
		case s.Buries():
			how = "bury"
		case s.Rest == core.Requeue:
			how = "requeue"
		}
		names[i] = settled[i].ID + ":" + how
	}
	return joinNames(names)
}

// joinNames lists a few names, or counts many.
func joinNames(names []string) string {
	if len(names) > 10 {
		return fmt.Sprintf("%d jobs", len(names))
	}
	return strings.Join(names, " ")
}

// manyNames returns n names that begin with a letter.
func manyNames(letter string, n int) (names []string) {
	for i := range n {
		names = append(names, letter+strconv.Itoa(i))
	}
	return names
}

// scriptShard is the shard of transcripts. A job of it may be recovered twice.
func scriptShard(batchSize int) *shardInfo {
	queue := &Queue{
		Name:      "orders",
		BatchSize: batchSize,
		PerJob:    100,
		Bytes:     1 << 20,
		Queue:     execution.Queue{Policy: core.RetryPolicy{MaxRetries: 3, MaxRecoveries: 2}},
	}
	server := &execution.Server{
		Handlers: context.Background(),
		Stop:     context.Background(),
		Clock:    clock.New(),
		Logger:   slog.New(slog.DiscardHandler),
		Observed: true,
	}
	shard := execution.Shard{ID: core.Shard{Queue: "orders"}, Queue: &queue.Queue, Server: server}
	return &shardInfo{Shard: shard, queue: queue}
}

// scriptConfig is the configuration of the server of transcripts.
func scriptConfig() *Config {
	return &Config{Owner: "self", Node: "node", LeaseTTL: scriptTTL, PollInterval: scriptPoll}
}

// ranBatch returns a batch that has run, and its settlements. All its jobs are done.
func ranBatch(s *execution.Shard, names []string, now time.Time) (*runningBatch, []core.Settlement) {
	b := &runningBatch{}
	b.Start(s, 1, claimsNamed(names), now)
	b.Close(nil)
	return b, b.Settlements(nil)
}
