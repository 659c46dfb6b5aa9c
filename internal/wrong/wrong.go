// Package wrong lists what is wrong in a store now, worst first, from the facts that an inspector
// has read. It is pure: it reads no store and no clock.
package wrong

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// Kind is a kind of fault. Worse kinds have smaller numbers.
type Kind uint8

// Kinds, worst first: all red ones come before all amber ones.
const (
	// NoAnswer is a store that does not answer.
	NoAnswer Kind = iota
	// PartAway are shards that can't be reached.
	PartAway
	// CheckFails is a check of the store that fails.
	CheckFails
	// NobodyServes is a queue with due or claimed jobs that no running server serves, or several.
	NobodyServes
	// OwnerGone are claimed jobs whose server is gone.
	OwnerGone
	// Crashes is a claimed job that has lost its servers repeatedly and may crash them.
	Crashes
	// NotMoving is a served queue with due jobs in which no job ends.
	NotMoving
	// Failing is a queue in which more than a fifth of the jobs of the last ten minutes failed, and
	// more than ten jobs.
	Failing
	// OtherRule are servers whose program has another merge rule than the queue.
	OtherRule
	// BrokenSchedule is a schedule whose spec servers can't read.
	BrokenSchedule
	// Holds are jobs that are held after their last retry.
	Holds
	// MorgueGrows is a queue with jobs that were buried within the last hour.
	MorgueGrows

	// TicksLate is a queue with a schedule that should have fired a minute ago or earlier.
	TicksLate
	// HotShard is a shard that lags far behind the others of its queue.
	HotShard
	// Late is a queue whose lag is a minute or more.
	Late
	// Unowned are shards with due jobs that no server has leased.
	Unowned
	// NearMorgue are jobs that wait for their last retry.
	NearMorgue
	// Unreadable are records that were set aside because they can't be read.
	Unreadable
	// BrokenSettings are settings of a queue that can't be read.
	BrokenSettings
	// NotFollowed are settings of a queue that running servers don't follow.
	NotFollowed
	// RunsLong is a job whose handler has run for an hour or more and may hang.
	RunsLong
	// CheckWarns is a check of the store that warns.
	CheckWarns
	// ServerGone is a server that stopped responding.
	ServerGone

	// Paused is a paused queue in which jobs wait.
	Paused

	// Versions are servers of several versions side by side.
	Versions
)

var names = [...]string{
	"no answer",
	"part away",
	"check fails",
	"nobody serves",
	"owner gone",
	"crashes",
	"not moving",
	"failing",
	"other rule",
	"broken schedule",
	"held jobs",
	"morgue grows",
	"ticks late",
	"hot shard",
	"late",
	"unowned",
	"near morgue",
	"unreadable",
	"broken settings",
	"settings not followed",
	"runs long",
	"check warns",
	"server gone",
	"paused",
	"versions",
}

// Level is how urgent a kind of fault is. More urgent levels have smaller numbers.
type Level uint8

// Levels, the most urgent first.
const (
	// Red is work that does not happen, or that is lost.
	Red Level = iota
	// Amber is work that happens late, or a fault that may come.
	Amber
	// Hold is work that an operator has stopped.
	Hold
	// Note is a fact that may explain something else.
	Note
)

// String returns the level as a word.
func (l Level) String() string {
	switch l {
	case Red:
		return "red"
	case Amber:
		return "amber"
	case Hold:
		return "hold"
	}
	return "note"
}

// Level returns how urgent faults of the kind are.
func (k Kind) Level() Level {
	switch {
	case k <= MorgueGrows:
		return Red
	case k <= ServerGone:
		return Amber
	case k == Paused:
		return Hold
	}
	return Note
}

// String returns the kind in a few words.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// View is what an inspector has read of a store.
type View struct {
	// Now is the store's time, or this process's time if the store did not answer.
	Now time.Time
	// Silence is the text of the error if the store did not answer. Then the rest of the view is
	// older.
	Silence string
	// Stats are all queues, without the shards in Unreached.
	Stats     []inspect.QueueStats
	Unreached []core.Shard
	// Nodes are the servers. NodesUnknown is set if they could not be listed. Then every queue counts
	// as served.
	Nodes        []inspect.Node
	NodesUnknown bool
	Checks       []inspect.Check
	// Recent has the minutes of the last hour by queue, oldest first, and Died the dead letters of
	// that hour. Queues may be missing.
	Recent map[string][]inspect.MinuteStats
	Died   map[string]Deaths
	// LastRetries are the jobs that wait for their last retry, by queue, as [LastRetryOf] counts them.
	// Queues may be missing.
	LastRetries map[string]LastRetry
	// Suspects are the claimed jobs that may crash their servers, by queue, as [SuspectsOf] finds
	// them. Queues may be missing.
	Suspects map[string]Suspects
	// Ticks are the facts of the schedules, by queue, as [TicksOf] returns them. Queues may be
	// missing.
	Ticks map[string]Ticks
	// Pauses are the actions that paused the paused queues, by queue, as [PausesOf] finds them. Queues
	// may be missing.
	Pauses map[string]inspect.Action
	// Rates are how long the rates of queues allow no start, by queue. Only those of [RatedQueues]
	// count.
	Rates map[string]inspect.RateWait
	// ShowID returns what may be shown of an id. If it is nil, the whole id is shown.
	ShowID func(queue, id string) string
}

// Deaths are dead letters that changed within the last hour.
type Deaths struct {
	// Count is the number of dead letters. More is set if there are more.
	Count int
	More  bool
	// First and Last are the times of the first and of the last counted dead letter.
	First, Last time.Time
	// Error is the error that most of them have, as it may be shown, and Same is the number of those
	// that have it. Error is empty if no error has more than half of them.
	Error string
	Same  int
}

// Line describes one fault, or several with one cause.
type Line struct {
	Kind Kind
	// Queue and Shard are the queue and the shard that have the fault, or empty and -1. Server is the
	// server that has the fault, or empty.
	Queue  string
	Shard  int
	Server string
	// ID is the id of the running job that causes the fault, as ShowID shows it. It is empty if no
	// such job is known.
	ID string
	// Owners are the owner ids of the servers that are gone and that the text names.
	Owners []string
	// Text describes the fault, without the queue.
	Text string
	// Since is when the fault began. Seen is set if that is unknown. Then Since is when the fault was
	// first seen, and it may have begun earlier.
	Since time.Time
	Seen  bool
	// Parts are the faults of single queues that the line stands for. Then the line itself names no
	// queue. Parts have no parts.
	Parts []Line
	// weight orders the lines of a kind, the largest first.
	weight int64
	// causes are the names of the servers in Owners. waiting and orphaned are the number of jobs that
	// wait because of the fault, and how many of them servers that are gone have left.
	causes            []string
	waiting, orphaned int64
}

// Of returns the fault of a queue that the line is or stands for, or nil if there is none.
func (l *Line) Of(queue string) *Line {
	if l.Queue == queue {
		return l
	}
	for at := range l.Parts {
		if l.Parts[at].Queue == queue {
			return &l.Parts[at]
		}
	}
	return nil
}

// key identifies a fault from one look to the next.
func (l *Line) key() string {
	return l.Kind.String() + "\x00" + l.Queue + "\x00" + l.Server + "\x00" + strconv.Itoa(l.Shard)
}

// Memory is what earlier looks have shown: when the store last answered, when each fault was first
// seen, earlier lags, and when each queue was last paused. The zero value remembers no look.
type Memory struct {
	answered time.Time
	first    map[string]time.Time
	lags     map[string][]lagAt
	paused   map[string]time.Time
}

type lagAt struct {
	at  time.Time
	lag time.Duration
}

// Now returns what is wrong, worst first, and what to remember for the next look.
func Now(v *View, before Memory) (lines []Line, after Memory) {
	after.lags, after.paused = remembered(v, before.lags), pauses(v, before.paused)
	if after.answered = before.answered; v.Silence == "" {
		after.answered = v.Now
	}
	r := rules{
		View:     v,
		answered: after.answered,
		lags:     after.lags,
		paused:   after.paused,
		serving:  serving(v.Nodes),
		gone:     gone(v.Nodes),
	}

	r.store()
	for at := range v.Stats {
		r.queue(&v.Stats[at])
	}
	r.servers()
	r.versions()

	// Lines without a beginning of their own have one before they are folded, so that it stays the same
	// whichever other faults come and go.
	after.first = make(map[string]time.Time, len(r.lines))
	for at := range r.lines {
		l := &r.lines[at]
		seen, known := before.first[l.key()]
		if !known || seen.After(v.Now) {
			seen = v.Now
		}
		after.first[l.key()] = seen
		if l.Since.IsZero() {
			l.Since, l.Seen = seen, true
		}
	}

	r.fold()
	slices.SortStableFunc(r.lines, func(a, b Line) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(b.weight, a.weight),
			strings.Compare(a.Queue, b.Queue),
			cmp.Compare(a.Shard, b.Shard),
		)
	})
	return r.lines, after
}

// rising is how much a lag must change over a minute or more to be reported as growing or catching
// up.
const rising = 30 * time.Second

// remembered adds the lags of a look to those of the previous ten minutes. It keeps one lag of a
// queue each ten seconds.
func remembered(v *View, before map[string][]lagAt) map[string][]lagAt {
	lags := make(map[string][]lagAt, len(v.Stats))
	for at := range v.Stats {
		name := v.Stats[at].Queue.Name
		kept := slices.DeleteFunc(slices.Clone(before[name]), func(l lagAt) bool {
			return v.Now.Sub(l.at) > 10*time.Minute || l.at.After(v.Now)
		})
		if n := len(kept); n == 0 || v.Now.Sub(kept[n-1].at) >= 10*time.Second {
			kept = append(kept, lagAt{v.Now, v.Stats[at].Lag})
		}
		lags[name] = kept
	}
	return lags
}

// pauses returns when each queue was last seen paused, if that is recent enough to explain why no
// job has ended.
func pauses(v *View, before map[string]time.Time) map[string]time.Time {
	seen := map[string]time.Time{}
	for at := range v.Stats {
		q := &v.Stats[at].Queue
		if q.Paused {
			seen[q.Name] = v.Now
		} else if last, known := before[q.Name]; known && !last.After(v.Now) && v.Now.Sub(last) < still {
			seen[q.Name] = last
		}
	}
	return seen
}

// serving returns the number of running servers of each queue.
func serving(nodes []inspect.Node) map[string]int {
	by := map[string]int{}
	for at := range nodes {
		if n := &nodes[at]; n.State == inspect.NodeAlive {
			for _, queue := range n.Queues {
				by[queue]++
			}
		}
	}
	return by
}
