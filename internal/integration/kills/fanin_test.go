package kills_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// A fan-in, as docs/guide/dependencies.md shows it: each child reports to its parent by Then, and
// the parent awaits reports until all children have reported or are dead. A family is a parent and
// its children. Families with an even number continue without dead children. The others wait for an
// operator who revives these.
var (
	fanChildren = skein.NewQueue[string]("children", skein.QueueOptions[string]{
		MaxRetries: 2, MaxRecoveries: 1 << 20, Backoff: func(int) time.Duration { return 50 * time.Millisecond },
	})
	fanParents = skein.NewQueue[string]("parents", skein.QueueOptions[string]{
		MaxRecoveries: 1 << 20,
		PushRule:      skein.Earliest(),
		Backoff:       func(int) time.Duration { return 50 * time.Millisecond },
	})
)

const (
	// fanVariable names the number of a family's children. fanCure is the end of the name of a
	// file. Once the file exists, the children that have always failed succeed.
	fanVariable = "SKEIN_TEST_WORKER_CHILDREN"
	fanCure     = ".cured"
	// fanFailures is the number of executions in a hundred that fail at random.
	fanFailures = 10
	// fanTTL is long enough for a busy machine, on which calls with a third of a short one take
	// longer and are cancelled again and again.
	fanTTL   = 3 * time.Second
	fanLanes = 4
)

func familyName(n int) string { return fmt.Sprint("family-", n) }

func childName(family string, n int) string { return fmt.Sprintf("%s/child-%d", family, n) }

// alwaysFails reports whether a child fails until the cure: one in fifty.
func alwaysFails(child string) bool {
	_, number, _ := strings.Cut(child, "/child-")
	n, err := strconv.Atoi(number)
	return err == nil && n%50 == 7
}

// waitsForDead reports whether a parent waits for an operator to revive its dead children.
func waitsForDead(family string) bool { return (family[len(family)-1]-'0')%2 == 1 }

// fanWorker serves children and parents until an interrupt. It writes a line for each child that is
// done, before it reports, and one for each parent that ends.
func fanWorker() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	store, closeStore, err := backends.Open(ctx, os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	children, err := strconv.Atoi(os.Getenv(fanVariable))
	if err != nil {
		return err
	}
	w := &fanProcess{
		j: journal{os.Getenv(journalVariable)}, children: children,
		client: skein.NewClient(store, skein.ClientOptions{}), inspector: inspect.New(store, inspect.Options{}),
	}
	options := skein.ServerOptions{
		Lanes: fanLanes, LeaseTTL: fanTTL, PollInterval: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
	options.OnStart = func(context.Context) error {
		w.j.write(journalLine{what: lineReady, pid: os.Getpid()})
		return nil
	}
	return skein.NewServer(store, options, fanChildren.Each(w.child), fanParents.Handler(w.parent)).Run(ctx)
}

type fanProcess struct {
	j         journal
	children  int
	client    *skein.Client
	inspector *inspect.Inspector
}

func (w *fanProcess) child(ctx context.Context, id, family string) error {
	if rand.N(100) < fanFailures {
		return errors.New("not now")
	}
	if alwaysFails(id) {
		if _, err := os.Stat(w.j.path + fanCure); err != nil {
			return errors.New("never")
		}
	}
	w.j.write(journalLine{what: lineEnded, pid: os.Getpid(), id: id})
	return fanParents.Then(ctx, w.client, family, id)
}

func (w *fanProcess) parent(ctx context.Context, family string, reports []string) error {
	reported := make(map[string]bool, len(reports))
	for _, child := range reports {
		reported[child] = true
	}
	for n := range w.children {
		child := childName(family, n)
		if reported[child] {
			continue
		}
		settled, dead, err := w.inspector.Settled(ctx, fanChildren.Name(), child, time.Time{})
		if err != nil {
			return err
		}
		if !settled || dead && waitsForDead(family) {
			return skein.Await(time.Second)
		}
	}
	w.j.write(journalLine{what: lineEnded, pid: os.Getpid(), id: family})
	return nil
}

// No parent is stuck, and none ends before its children, whatever fails and whichever process is
// killed.
func TestAFanInLeavesNoParentStuck(t *testing.T) {
	t.Parallel()
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFan(t, newURL(t), tier.Count(2, 4), tier.Count(60, 1000))
			f.push()
			f.work(kit.FromVariable(t, killsVariable, tier.Count(2, 20)))
			f.check()
		})
	}
}

// fan is the families of a test.
type fan struct {
	t                  *testing.T
	url                string
	store              inspect.Store
	client             *skein.Client
	inspector          *inspect.Inspector
	j                  journal
	families, children int
	processes          []*process
	kills              int
	offset             int64
	// done has the children that are done. early has for each parent that has ended the children
	// that were not done by then.
	done  map[string]bool
	early map[string][]string
}

func newFan(t *testing.T, url string, families, children int) *fan {
	store := kit.Open(t, url)
	return &fan{
		t: t, url: url, store: store, j: newJournal(t), families: families, children: children,
		client:    skein.NewClient(store, skein.ClientOptions{}),
		inspector: inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}),
		done:      map[string]bool{}, early: map[string][]string{},
	}
}

// push pushes all children, and then their parents.
func (f *fan) push() {
	f.t.Helper()
	var children, parents []skein.Entry[string]
	for n := range f.families {
		family := familyName(n)
		for c := range f.children {
			children = append(children, skein.Entry[string]{ID: childName(family, c), Payload: family})
		}
		parents = append(parents, skein.Entry[string]{ID: family, Payload: "begin"})
	}
	must(f.t, fanChildren.PushMany(f.t.Context(), f.client, children))
	must(f.t, fanParents.PushMany(f.t.Context(), f.client, parents))
}

func (f *fan) start() {
	f.t.Helper()
	f.processes = append(f.processes,
		startProgram(f.t, os.Args[0], "fan", f.url, f.j, fmt.Sprintf("%s=%d", fanVariable, f.children)))
}

// killOne kills one of the processes, and starts another.
func (f *fan) killOne() {
	f.t.Helper()
	n := rand.IntN(len(f.processes))
	f.processes[n].kill(f.t)
	f.processes = append(f.processes[:n], f.processes[n+1:]...)
	f.kills++
	f.start()
}

// work lets two processes work until all families have ended, and kills them in between: the last
// time after the operator has revived the dead.
func (f *fan) work(kills int) {
	f.t.Helper()
	f.start()
	f.start()
	for kill := range kills - 1 {
		want := (kill + 1) * f.families * f.children / (kills + 1)
		f.await("children are done", want, func() int { return len(f.done) })
		f.killOne()
	}
	f.await("families without dead children, or that continue without these", f.families-f.families/2, func() int {
		return len(f.early)
	})
	f.await("children are done or dead", f.families*f.children, func() int {
		c := f.counts(fanChildren.Name())
		if c.Length()+c.Claimed > 0 {
			return len(f.done)
		}
		return f.families * f.children
	})
	f.reviveDead()
	f.await("families have ended", f.families, func() int { return len(f.early) })
	for _, queue := range []string{fanChildren.Name(), fanParents.Name()} {
		awaitProgress(f.t, func() (have int, done bool) { // a child that reported again has made a new job of its parent
			c := f.counts(queue)
			return int(c.Processed + c.Failed), c.Length()+c.Claimed == 0
		})
	}
	for _, p := range f.processes {
		f.j.await(f.t, lineReady, p.pid(), 1) // before that a signal kills it
		p.interrupt(f.t)
	}
}

func (f *fan) counts(queue string) inspect.Counts {
	f.t.Helper()
	stats, err := f.inspector.Stats(f.t.Context(), queue)
	must(f.t, err)
	return stats[0].Counts
}

// await waits until a count is reached. It ends the test if the count no longer changes.
func (f *fan) await(what string, want int, count func() int) {
	f.t.Helper()
	last, since := -1, time.Now()
	for {
		f.read()
		have := count()
		switch {
		case have >= want:
			return
		case have != last:
			last, since = have, time.Now()
		case time.Since(since) > testservers.Patience:
			f.t.Fatalf("%s: %d of %d for %v; parents that have ended: %v",
				what, have, want, testservers.Patience, f.early)
		}
		time.Sleep(20 * time.Millisecond) // a slow machine only polls less often
	}
}

// read reads the new lines of the journal, which are in the order in which they were written.
func (f *fan) read() {
	f.t.Helper()
	var lines []journalLine
	lines, f.offset = f.j.readFrom(f.t, f.offset)
	for _, l := range lines {
		switch {
		case l.what != lineEnded:
		case strings.Contains(l.id, "/"):
			f.done[l.id] = true
		case f.early[l.id] == nil:
			f.early[l.id] = []string{}
			for n := range f.children {
				if child := childName(l.id, n); !f.done[child] {
					f.early[l.id] = append(f.early[l.id], child)
				}
			}
		}
	}
}

// dead returns the dead letters of the children.
func (f *fan) dead() map[string]bool {
	f.t.Helper()
	dead := map[string]bool{}
	for letter, err := range f.inspector.Morgue(f.t.Context(), fanChildren.Name(), inspect.ListOptions{}) {
		must(f.t, err)
		dead[letter.ID] = true
	}
	return dead
}

// reviveDead acts as the operator for whom some families wait: it cures the children that always
// fail and revives the dead ones.
func (f *fan) reviveDead() {
	f.t.Helper()
	must(f.t, os.WriteFile(f.j.path+fanCure, nil, 0o600))
	var revive []string
	for child := range f.dead() {
		if family, _, _ := strings.Cut(child, "/"); waitsForDead(family) {
			revive = append(revive, child)
			if f.early[family] != nil {
				f.t.Errorf("%s has ended, and its %s is dead", family, child)
			}
		}
	}
	if len(revive) == 0 {
		f.t.Error("no child is dead for which its parent waits; the test needs one")
	}
	for again := false; len(revive) > 0; again = true { // by chance some die again
		_, err := f.inspector.Revive(f.t.Context(), fanChildren.Name(), inspect.DeadIDs(revive...))
		must(f.t, err)
		if !again {
			f.killOne()
		}
		f.await("revived children are done or dead", 1, func() int {
			if c := f.counts(fanChildren.Name()); c.Length()+c.Claimed > 0 {
				return 0
			}
			return 1
		})
		dead := f.dead()
		revive = revive[:0]
		for child := range dead {
			if family, _, _ := strings.Cut(child, "/"); waitsForDead(family) {
				revive = append(revive, child)
			}
		}
	}
}

// check checks that each parent ended after its children: each was done before, or is dead.
func (f *fan) check() {
	f.t.Helper()
	dead := f.dead()
	without := 0
	for n := range f.families {
		family := familyName(n)
		for _, child := range f.early[family] {
			without++
			if waitsForDead(family) || !dead[child] {
				f.t.Errorf("%s has ended before %s", family, child)
			}
		}
	}
	if c := f.counts(fanParents.Name()); c.Dead > 0 {
		f.t.Errorf("%d parents are dead", c.Dead)
	}
	if without == 0 {
		f.t.Error("no parent continued without dead children; the test needs one")
	}
	f.t.Logf("%d families of %d children, %d kills: 0 stuck; %d children are done, "+
		"parents continued without %d that are dead",
		f.families, f.children, f.kills, len(f.done), without)
}
