package kills_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

const (
	setServers = 3
	// setTTL is the LeaseTTL of the servers, which read settings each third of it.
	setTTL = 6 * time.Second
	// lastRunning and lastLanes are the settings after the last change.
	lastRunning, lastLanes = 3, 2
	// settingRoundsVariable is how often settings change.
	settingRoundsVariable = "SKEIN_TEST_SETTING_ROUNDS"
)

var settable = skein.NewQueue[int]("settable", skein.QueueOptions[int]{
	Shards: 6, MaxRecoveries: 1000, MaxRunning: 10,
})

// setWorker is a server that keeps a journal of its jobs, and of the settings that it reads and
// announces. It ends by an interrupt.
func setWorker() error {
	options := skein.ServerOptions{Lanes: 4, LeaseTTL: setTTL}
	return serveThrough(options, noteSettings, func(j journal) skein.Handler {
		return settable.JobHandler(func(_ context.Context, job *skein.Job[int]) error {
			line := journalLine{what: lineBegan, pid: os.Getpid(), id: job.ID}
			j.write(line)
			time.Sleep(20 * time.Millisecond) // on a slow machine more jobs run at once, which the settings bound
			line.what = lineEnded
			j.write(line)
			return nil
		})
	})
}

// noteSettings writes a line for each version of the settings that a server has read, before the
// server has it, and for each that it announces.
func noteSettings(j journal) storekit.Interceptor {
	note := func(what string, version int64) {
		j.write(journalLine{what: what, pid: os.Getpid(), token: version})
	}
	return func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if r, ok := call.Request.(*ports.AnnounceRequest); ok {
			for _, q := range r.Node.Status.Queues {
				note(lineTells, q.SettingsVersion)
			}
		}
		err := next(ctx)
		if reply, ok := call.Reply.(*[]ports.Queue); ok && err == nil {
			for _, q := range *reply {
				note(lineRead, q.Settings.Version)
			}
		}
		return err
	}
}

// Two operators change settings at once, again and again, while servers start, stop and die under
// load. One of them is refused each time. No server announces an older version than it has read, and
// after the last change no more jobs run than it allows.
func TestServersFollowSettingsWhileTheyDieAndAreReplaced(t *testing.T) {
	tier.Long(t, "replaces processes at length")
	rounds := kit.FromVariable(t, settingRoundsVariable, 16)
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, open(t))
			for range setServers {
				s.start()
			}
			for range rounds {
				s.pushMore()
				s.contend()
				time.Sleep(rand.N(2 * time.Second)) // on a slow machine fewer jobs begin meanwhile
				s.replace()
			}
			s.check(s.last())
		})
	}
}

// setting is servers of a queue whose settings change.
type setting struct {
	*testing.T
	url       string
	operators [2]ports.ShardStore
	client    *skein.Client
	j         journal
	servers   []*process
	pushed    int
	// version is that of the settings.
	version int64
}

func newSetting(t *testing.T, url string) *setting {
	t.Helper()
	s := &setting{T: t, url: url, j: newJournal(t)}
	for i := range s.operators {
		s.operators[i] = kit.Open(t, url)
	}
	s.client = skein.NewClient(s.operators[0], skein.ClientOptions{})
	_, err := s.operators[0].Declare(t.Context(), ports.DeclareRequest{Queue: settable.Name(), Shards: 6})
	must(t, err)
	return s
}

func (s *setting) start() { s.servers = append(s.servers, startProcess(s.T, "set", s.url, s.j)) }

// replace ends a server by a signal, which may be SIGKILL, and starts another one.
func (s *setting) replace() {
	s.Helper()
	at := rand.N(len(s.servers))
	p := s.servers[at]
	s.servers = slices.Delete(s.servers, at, at+1)
	s.j.await(s.T, lineReady, p.pid(), 1)
	if rand.N(2) == 0 {
		s.j.write(journalLine{what: lineDied, pid: p.pid()}) // before it dies: its jobs count no more
		p.kill(s.T)
	} else {
		p.interrupt(s.T)
	}
	s.start()
}

func (s *setting) pushMore() {
	s.Helper()
	var entries []skein.Entry[int]
	for range 300 {
		s.pushed++
		entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("job-", s.pushed), Payload: s.pushed})
	}
	must(s.T, settable.PushMany(s.Context(), s.client, entries))
}

// stored returns the queue's settings, and the store's clock.
func (s *setting) stored(by ports.ShardStore) (core.Settings, core.Instant) {
	s.Helper()
	queues, err := by.Queues(s.Context())
	must(s.T, err)
	nodes, err := by.Nodes(s.Context())
	must(s.T, err)
	return queues[0].Settings, nodes.Now
}

// contend lets two operators, who have looked at the same settings, each change one of them.
func (s *setting) contend() {
	s.Helper()
	var changed [2]core.Settings
	for i, by := range s.operators {
		was, now := s.stored(by)
		for changed[i] = was; changed[i].Version == was.Version; {
			var err error
			changed[i], err = was.Change([]core.SettingChange{someChange(i)}, fmt.Sprint("operator ", i), now)
			must(s.T, err)
		}
	}

	errs := make(chan error, len(s.operators))
	for i, by := range s.operators {
		go func() {
			errs <- by.Configure(s.Context(), ports.ConfigureRequest{Queue: settable.Name(), Settings: changed[i]})
		}()
	}
	one, other := <-errs, <-errs
	if one == nil {
		one, other = other, one
	}
	if other != nil || !errors.Is(one, ports.ErrSettingsConflict) {
		s.Fatalf("two changes of version %d: %v and %v; want one %v", s.version, one, other, ports.ErrSettingsConflict)
	}
	s.changed(changed[0].Version)
}

// someChange is a change of one setting, another one for each operator.
func someChange(operator int) core.SettingChange {
	change := core.SettingChange{Name: []string{core.SettingMaxRunning, core.SettingMaxLanes}[operator]}
	if change.Unset = rand.N(4) == 0; !change.Unset {
		change.Value = strconv.Itoa(rand.N(6))
	}
	return change
}

// changed notes that the settings have a new version, one above the last.
func (s *setting) changed(version int64) {
	s.Helper()
	if version != s.version+1 {
		s.Fatalf("the settings have version %d after %d", version, s.version)
	}
	s.version = version
	s.j.write(journalLine{what: lineSet, token: version})
}

// last makes the last change, and continues under load while servers die and are replaced. It returns
// how many lines the journal had once each server followed that change.
func (s *setting) last() (followed int) {
	s.Helper()
	was, now := s.stored(s.operators[0])
	settings, err := was.Change([]core.SettingChange{
		{Name: core.SettingMaxRunning, Value: strconv.Itoa(lastRunning)},
		{Name: core.SettingMaxLanes, Value: strconv.Itoa(lastLanes)},
	}, "the last operator", now)
	must(s.T, err)
	if settings.Version > was.Version {
		must(s.T, s.operators[0].Configure(s.Context(), ports.ConfigureRequest{Queue: settable.Name(), Settings: settings}))
		s.changed(settings.Version)
	}

	for _, p := range s.servers {
		s.awaitFollowing(p)
	}
	followed = len(s.j.read(s.T))
	for range 4 {
		s.pushMore()
		s.replace()
		s.awaitFollowing(s.servers[len(s.servers)-1])
	}
	s.awaitFull(followed)
	for _, p := range s.servers {
		p.interrupt(s.T)
	}
	return followed
}

// awaitFull continues until as many jobs have run at once as the last change allows.
func (s *setting) awaitFull(followed int) {
	s.Helper()
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(100 * time.Millisecond) {
		most, _ := mostRunning(s.j.read(s.T), followed)
		if most >= lastRunning {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("at most %d jobs have run at once after %v", most, testservers.Patience)
		}
		s.pushMore()
	}
}

// awaitFollowing waits until a server announces the last version.
func (s *setting) awaitFollowing(p *process) {
	s.Helper()
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(20 * time.Millisecond) {
		lines := s.j.read(s.T)
		if slices.ContainsFunc(lines, func(l journalLine) bool {
			return l.what == lineTells && l.pid == p.pid() && l.token == s.version
		}) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("server %d does not announce version %d after %v", p.pid(), s.version, testservers.Patience)
		}
	}
}

// check checks the journal. All servers follow the last change from the given line on.
func (s *setting) check(followed int) {
	s.Helper()
	lines := s.j.read(s.T)
	s.checkVersions(lines)
	most, lanes := mostRunning(lines, followed)
	if most > lastRunning || lanes > lastLanes {
		s.Errorf("%d jobs ran at once, %d on one server; at most %d and %d may", most, lanes, lastRunning, lastLanes)
	}
	s.Logf("%d versions; at the end %d jobs ran at once, %d on one server", s.version, most, lanes)
}

// mostRunning returns how many jobs ran at once at most, over all servers and on one, from the given
// line on. What ran before the last change, and beyond it, ends by itself and is not counted.
func mostRunning(lines []journalLine, followed int) (most, mostLanes int) {
	running, dead, drained := make(map[int]map[string]bool), make(map[int]bool), false
	for i, l := range lines {
		switch {
		case l.what == lineDied:
			dead[l.pid] = true
			delete(running, l.pid)
		case l.what == lineBegan && !dead[l.pid]:
			if running[l.pid] == nil {
				running[l.pid] = make(map[string]bool)
			}
			running[l.pid][l.id] = true
		case l.what == lineEnded:
			delete(running[l.pid], l.id)
		}
		if i < followed {
			continue
		}

		all, lanes := 0, 0
		for _, jobs := range running {
			all, lanes = all+len(jobs), max(lanes, len(jobs))
		}
		if drained = drained || all <= lastRunning && lanes <= lastLanes; drained {
			most, mostLanes = max(most, all), max(mostLanes, lanes)
		}
	}
	return most, mostLanes
}

// checkVersions checks what each server reads and announces. A read that begins after a change returns
// its version, and a server announces no older version than that of a read that has ended. By the
// journal that is the read before the last one, since the last one may have begun before the change, or
// an announcement have been made before its end.
func (s *setting) checkVersions(lines []journalLine) {
	s.Helper()
	var set int64
	// since is the version that was set at the server's last read. last and before are what its last read
	// and the one before returned, and told is what it has announced.
	type server struct{ since, last, before, told int64 }
	servers := make(map[int]*server)
	for _, l := range lines {
		if l.what == lineSet {
			set = l.token
			continue
		}
		if servers[l.pid] == nil {
			servers[l.pid] = new(server)
		}
		switch v := servers[l.pid]; l.what {
		case lineRead:
			if l.token < v.since {
				s.Errorf("server %d reads version %d although %d was set before its last read", l.pid, l.token, v.since)
			}
			v.before, v.last, v.since = v.last, l.token, set
		case lineTells:
			if l.token < v.before || l.token < v.told {
				s.Errorf("server %d announces version %d although it has read %d, and has announced %d",
					l.pid, l.token, v.before, v.told)
			}
			v.told = l.token
		}
	}
}
