package engine

import (
	"slices"
	"strconv"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/ports"
)

// followRecords reads the records of the node's queues once per announce interval, until stop is
// closed. What an operator has set then applies.
func (e *Engine) followRecords(stop <-chan struct{}) {
	status := e.outages.Loop("settings", core.Shard{})
	for wait := e.announceInterval(); pause(wait, stop); {
		began := time.Now()
		status.Called(e.readRecords(nil))
		wait = max(1, e.announceInterval()-time.Since(began))
	}
}

// readRecords reads the records of queues, or of those that the node serves if queues is nil, and
// applies what operators have set. If the store does not answer, what is in force stays.
func (e *Engine) readRecords(queues []*Queue) error {
	e.recording.Lock()
	defer e.recording.Unlock()
	if queues == nil {
		queues = e.served.Load().queues
	}

	ctx, cancel := e.callContext()
	defer cancel()
	stored, err := e.store.Queues(ctx)
	if err != nil {
		return err
	}

	for _, q := range queues {
		at := slices.IndexFunc(stored, func(s ports.Queue) bool { return s.Name == q.Name })
		if at >= 0 { // else it was forgotten
			e.applySettings(q, stored[at].Settings)
			e.compareRule(q, stored[at].Merge)
		}
	}
	return nil
}

// applySettings makes the stored settings of a queue those in force. Settings that can't be read
// change nothing.
func (e *Engine) applySettings(q *Queue, s core.Settings) {
	was := q.settings
	if s.Broken {
		if !was.Broken {
			e.log.Error("the settings of a queue can't be read, so the server continues with what it has read before; "+
				"skein queue set writes them anew", "queue", q.Name, "version", s.Version)
		}
		q.settings.Broken = true
		return
	}
	if was.Equal(s) {
		return
	}

	q.settings = s
	q.following.Store(s.Version)
	e.keepDeadLetters(q, s)
	if e.bound(q, s) {
		e.subscribeAnew()
	}
	e.logSettings(q, was, s)
}

// boundsBy returns the bounds of the queue's batches: what operators have set, else the program's.
func (q *Queue) boundsBy(s core.Settings) (b dispatch.Bounds, rate core.Rate) {
	b, rate = dispatch.Bounds{Total: q.MaxRunning, Lanes: q.MaxLanes}, q.Rate
	if n, set := s.MaxRunning(); set {
		b.Total = n
	}
	if n, set := s.MaxLanes(); set {
		b.Lanes = n
	}
	if r, set := s.Rate(); set {
		rate = r
	}
	b.Interval = rate.Interval()
	return b, rate
}

// inCode returns what the program says for each setting of the queue that it gives a value, by name.
func (q *Queue) inCode() map[string]string {
	values := make(map[string]string)
	for name, n := range map[string]int64{
		core.SettingMaxRunning:  int64(q.MaxRunning),
		core.SettingMaxLanes:    int64(q.MaxLanes),
		core.SettingMorgueCount: q.Keep.Count,
	} {
		if n > 0 {
			values[name] = strconv.FormatInt(n, 10)
		}
	}
	if q.Rate != (core.Rate{}) {
		values[core.SettingRate] = q.Rate.String()
	}
	if q.Keep.Age > 0 {
		values[core.SettingMorgueAge] = q.Keep.Age.String()
	}
	return values
}

// logSettings logs each setting of a queue that has changed.
func (e *Engine) logSettings(q *Queue, was, now core.Settings) {
	code := q.inCode()
	own := func(name string) string {
		if value, ok := code[name]; ok {
			return value
		}
		return "0"
	}

	for _, s := range now.Set {
		if before, ok := was.Find(s.Name); ok && before == s {
			continue
		}
		if _, err := core.ParseSetting(s.Name, s.Value); err != nil {
			e.log.Warn("a setting of a queue is not known to this version of the server, which does not follow it",
				"queue", q.Name, "setting", s.Name, "value", s.Value, "by", s.By)
			continue
		}
		e.log.Info("a setting of a queue applies instead of the program's value",
			"queue", q.Name, "setting", s.Name, "value", s.Value, "by", s.By, "at", s.At.Time(), "own", own(s.Name))
	}

	for _, s := range was.Set {
		if _, ok := now.Find(s.Name); !ok {
			e.log.Info("a setting of a queue was unset: the program's value applies",
				"queue", q.Name, "setting", s.Name, "value", s.Value, "own", own(s.Name))
		}
	}
}

// compareRule logs that the stored merge rule of a queue differs from this program's, unless that was
// logged. An operator can change it. The server and the clients that have declared the queue continue
// by its new rule, but each new declaration is refused.
func (e *Engine) compareRule(q *Queue, rule core.MergeRule) {
	if rule == q.Merge {
		q.otherRule = nil
		return
	}
	if q.otherRule != nil && *q.otherRule == rule {
		return
	}

	q.otherRule = &rule
	e.log.Warn("the merge rule of a queue was changed: deploy this program with the queue's rule; "+
		"until then it continues by that rule, but its next start and its new clients are refused",
		"queue", q.Name, "rule", rule.String(), "own", q.Merge.String())
}
