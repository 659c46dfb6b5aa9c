package service

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/canonical"
	"github.com/skeinq/skein/internal/scores"
)

// AnyJSON is a JSON value of any kind, as it was sent.
type AnyJSON []byte

// UnmarshalJSON implements [json.Unmarshaler].
func (j *AnyJSON) UnmarshalJSON(data []byte) error {
	*j = append((*j)[:0], data...)
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (j AnyJSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// PushBody has entries to push.
type PushBody struct {
	Entries []PushEntry `json:"entries" doc:"the entries, 1 to 500, in order"`
	Rule    string      `json:"rule,omitempty" doc:"the time of a queued job that an entry meets, unless the job has failed: keep (by default) keeps the job's, earliest takes the earlier one, and debounce delays it to that of the entry"`
	Limit   *float64    `json:"limit_seconds,omitempty" doc:"with debounce: how long after its first push a job may be delayed, 60 by default"`
}

// PushEntry is an entry to push.
type PushEntry struct {
	ID      string  `json:"id" doc:"the id, 1 to 512 bytes without control characters"`
	Payload AnyJSON `json:"payload,omitempty" doc:"the payload as JSON of any kind; its canonical form is stored"`
	Octets
	Score      *float64   `json:"score,omitempty" doc:"the place of the payload among those of its id, lowest first; by default the time of the API's process in seconds"`
	At         *time.Time `json:"at,omitempty" doc:"when a new job may run; by default now"`
	In         *float64   `json:"in_seconds,omitempty" doc:"the same, from now by the store's clock"`
	Urgent     *float64   `json:"urgent_seconds,omitempty" doc:"overtake the jobs that became due up to this time earlier, 0.001 to 86400; without at and in_seconds"`
	OnceIn     *float64   `json:"once_in_seconds,omitempty" doc:"drop the entry if an equal payload was pushed for the id with such a time, which has not passed, 1 to 315360000"`
	Tags       []string   `json:"tags,omitempty" doc:"tags to find the job by, at most 8 of at most 64 bytes"`
	Meta       *string    `json:"meta,omitempty" doc:"at most 256 bytes that are kept with the payload, such as a trace context"`
	MetaBase64 *string    `json:"meta_base64,omitempty" doc:"the same in standard Base64"`
}

// PushReply counts what the entries of a push met. Each entry is in one of the counts.
type PushReply struct {
	New        int       `json:"new" doc:"entries that made a job"`
	Merged     int       `json:"merged" doc:"entries that added a payload to a queued job"`
	Duplicate  int       `json:"duplicate" doc:"entries whose queued job had an equal payload already"`
	Superseded int       `json:"superseded" doc:"entries that were dropped by the merge rule, since the job keeps payloads with higher scores"`
	Repeated   int       `json:"repeated" doc:"entries that were dropped, since an equal one was accepted before and its once_in_seconds have not passed"`
	Now        time.Time `json:"now" doc:"the store's clock at the push"`
}

func (b *PushBody) about(a *Action) {
	a.IDs = make([]string, len(b.Entries))
	for at := range b.Entries {
		a.IDs[at] = b.Entries[at].ID
	}
}

func (c *call) push(b *PushBody) (*PushReply, error) {
	if n := len(b.Entries); n == 0 || n > inspect.MaxPush {
		return nil, ProblemBadRequest.With("%d entries; send 1 to %d", n, inspect.MaxPush)
	}
	rule, err := b.rule()
	if err != nil {
		return nil, err
	}

	entries := make([]core.Entry, len(b.Entries))
	first := c.scores.Take(len(entries), time.Now())
	for at := range entries {
		entries[at].Score = scores.At(first + int64(at))
		if err := c.pushEntry(&b.Entries[at], &entries[at]); err != nil {
			return nil, problemEntry.With("entry %d: %v; nothing was stored", at, detailOf(err)).about(at)
		}
	}

	pushed, err := c.inspector.Push(c.ctx, c.queue, rule, entries...)
	if partly := new(inspect.PushError); errors.As(err, &partly) {
		return nil, c.ProblemOf(c.queue, err).about(partly.Entries...)
	} else if err != nil {
		return nil, err
	}
	return &PushReply{
		New:        pushed.New,
		Merged:     pushed.Merged,
		Duplicate:  pushed.Duplicate,
		Superseded: pushed.Superseded,
		Repeated:   pushed.Repeated,
		Now:        pushed.Now,
	}, nil
}

// detailOf returns the text of an error, and of a problem its detail alone.
func detailOf(err error) string {
	if p := new(Problem); errors.As(err, &p) {
		return p.Detail
	}
	return err.Error()
}

// rule returns the push rule that the body names.
func (b *PushBody) rule() (rule core.PushRule, err error) {
	switch b.Rule {
	case "", "keep":
	case "earliest":
		rule.Kind = core.Earliest
	case "debounce":
		rule.Kind = core.Debounce
	default:
		return rule, ProblemBadRequest.With("rule is %q; give keep, earliest or debounce", b.Rule)
	}

	if b.Limit != nil {
		if rule.Kind != core.Debounce {
			return rule, ProblemBadRequest.With("limit_seconds is for the rule debounce; omit it")
		}
		rule.Limit, err = seconds("limit_seconds", *b.Limit)
	}
	return rule, err
}

// pushEntry fills in an entry, whose default score is set.
func (c *call) pushEntry(from *PushEntry, to *core.Entry) (err error) {
	to.ID = from.ID
	if to.Data, err = from.data(); err != nil {
		return err
	}
	if most := c.o.MaxPayloadBytes; len(to.Data) > most {
		return ProblemBadRequest.With("the payload has %d bytes, at most %d are allowed; push a reference to the data",
			len(to.Data), most)
	}

	if from.Score != nil {
		to.Score = core.NormalScore(*from.Score)
	}
	if to.When, err = from.when(); err != nil {
		return err
	}
	if to.OnceIn, err = from.once(); err != nil {
		return err
	}
	if to.Tags, err = core.NewTags(from.Tags...); err != nil {
		return err
	}
	if from.Meta != nil || from.MetaBase64 != nil {
		if to.Meta, err = (&Octets{Data: from.Meta, Base64: from.MetaBase64}).Bytes(); err != nil {
			return ProblemBadRequest.With("give one of meta and meta_base64, the latter in standard Base64")
		}
	}

	if d := to.When.Delay(); d > 0 { // the time may be after the last one that a job may have
		if _, err := instantOf(time.Now().Add(d)); err != nil {
			return err
		}
	}
	return to.Validate()
}

// data returns the bytes of the payload.
func (e *PushEntry) data() ([]byte, error) {
	if given(e.Payload != nil, e.Data != nil, e.Base64 != nil) != 1 {
		return nil, ProblemBadRequest.With("give the payload in one of payload, data and data_base64")
	}

	if e.Payload != nil {
		return canonical.JSON(e.Payload)
	}
	return octets(&e.Octets)
}

// given returns how many fields are there.
func given(there ...bool) (fields int) {
	for _, is := range there {
		if is {
			fields++
		}
	}
	return fields
}

// when returns when the job may run.
func (e *PushEntry) when() (when core.When, err error) {
	var d time.Duration
	switch {
	case given(e.At != nil, e.In != nil, e.Urgent != nil) > 1:
		return when, ProblemBadRequest.With("give one of at, in_seconds and urgent_seconds")
	case e.At != nil:
		at, err := instantOf(*e.At)
		return core.At(at), err
	case e.In != nil:
		d, err = seconds("in_seconds", *e.In)
		return core.In(d), err
	case e.Urgent != nil:
		d, err = seconds("urgent_seconds", *e.Urgent)
		return core.Urgent(d), err
	}
	return when, nil
}

// once returns the time in which the entry is accepted once, 0 if it always is.
func (e *PushEntry) once() (d time.Duration, err error) {
	if e.OnceIn == nil {
		return 0, nil
	}
	if d, err = seconds("once_in_seconds", *e.OnceIn); err == nil && d == 0 {
		err = ProblemBadRequest.With("once_in_seconds is 0; give 1 to %d, or omit it", int(core.MaxOnce.Seconds()))
	}
	return d, err
}

// instantOf returns a time in microseconds. It refuses a time that no job may have.
func instantOf(t time.Time) (core.Instant, error) {
	at := core.InstantOf(t)
	if !at.Time().Equal(t.Truncate(time.Microsecond)) {
		return 0, ProblemBadRequest.With("the job would run at %s; give a time from %s to %s", t.UTC().Format(time.RFC3339),
			core.Instant(0).Time().Format(time.DateOnly), core.MaxInstant.Time().Format(time.DateOnly))
	}
	return at, nil
}
