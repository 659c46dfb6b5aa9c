package record

import "github.com/skeinq/skein/core"

// AppendDeadLetter appends a packed dead letter, without its id and ChangedAt. That of a settlement
// has no payloads and tags, which are those of the claimed job.
func AppendDeadLetter(b []byte, d *core.DeadLetter) []byte {
	b = append(b, byte(len(d.Group)))
	e := begin(append(b, d.Group...))
	e.scoreOf(d.Payloads)
	e.tags(d.Tags)
	if len(d.Failures) > 0 {
		e.flag(flagFailed)
		e.failures(d.Failures)
	}
	e.payloads(d.Payloads)
	return e.b
}

// ParseDeadLetter reads a packed dead letter of an id, with its ChangedAt.
func ParseDeadLetter(id, text string, at core.Instant) (core.DeadLetter, error) {
	s := decoder{rest: text}
	dead := core.DeadLetter{ID: id, ChangedAt: at, Group: s.sized(1)}
	flags := s.number(1)
	score := s.score(flags)
	dead.Tags = s.tags(flags)
	if flags&flagFailed != 0 {
		dead.Failures = s.failures()
	}

	dead.Payloads = s.payloads(flags, score)
	if s.bad || s.rest != "" {
		return core.DeadLetter{}, ErrStored
	}
	return dead, nil
}

// ParseGroup reads the counts of a group of dead letters. ok is false if they can't be read.
func ParseGroup(name, text string) (g core.Group, ok bool) {
	s := decoder{rest: text}
	g = core.Group{Name: name, Count: int64(s.instant()), First: s.instant(), Last: s.instant()}
	return g, !s.bad && s.rest == "" && g.Count > 0
}
