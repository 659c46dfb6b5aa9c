package record

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ErrReply reports a reply that none of the store's scripts returns.
var ErrReply = errors.New(
	"redis: the reply of a script can't be read; check whether a proxy between this program and Redis changes replies")

// Reply reads the values that a script returned, one after another. After a value of an unexpected
// kind, and after the end, it returns zeros, and bad is set.
type Reply struct {
	values []any
	bad    bool
}

// ReplyOf returns the values of a list. The reply is bad if the value is no list.
func ReplyOf(value any) Reply {
	values, ok := value.([]any)
	return Reply{values: values, bad: !ok}
}

// Next reads a value of any kind.
func (r *Reply) Next() any {
	if len(r.values) == 0 {
		r.bad = true
		return nil
	}
	v := r.values[0]
	r.values = r.values[1:]
	return v
}

// Text reads a text.
func (r *Reply) Text() string {
	text, ok := r.Next().(string)
	r.bad = r.bad || !ok
	return text
}

// Optional reads a text or nil; ok is false for nil.
func (r *Reply) Optional() (text string, ok bool) {
	v := r.Next()
	text, ok = v.(string)
	r.bad = r.bad || !ok && v != nil
	return text, ok
}

// Int reads an integer.
func (r *Reply) Int() int64 {
	n, ok := r.Next().(int64)
	r.bad = r.bad || !ok
	return n
}

// Parsed reads an integer that comes as text.
func (r *Reply) Parsed() int64 {
	n, err := strconv.ParseInt(r.Text(), 10, 64)
	r.bad = r.bad || err != nil
	return n
}

// List reads a list of values.
func (r *Reply) List() Reply {
	inner := ReplyOf(r.Next())
	r.bad = r.bad || inner.bad
	return inner
}

// Join makes the reply bad if one of the lists in it is.
func (r *Reply) Join(lists ...*Reply) {
	for _, list := range lists {
		r.bad = r.bad || list.bad
	}
}

// Rest returns the values left to read.
func (r *Reply) Rest() []any { return r.values }

// More reports whether there are values left to read.
func (r *Reply) More() bool { return len(r.values) > 0 && !r.bad }

// Err returns ErrReply if a value could not be read, otherwise nil.
func (r *Reply) Err() error {
	if r.bad {
		return fmt.Errorf("%w", ErrReply)
	}
	return nil
}

// Head reads an instant, or -1 if there is no head.
func (r *Reply) Head() core.Head {
	at := r.Int()
	if at < 0 {
		return core.Head{}
	}
	return core.Head{Due: core.Instant(at), OK: true}
}

// Number reads an integer that comes as text. nil is 0.
func (r *Reply) Number() int64 {
	text, ok := r.Optional()
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	r.bad = r.bad || err != nil
	return n
}

// Pairs reads the fields and values of a hash: a map if the client speaks RESP3, else a list.
func (r *Reply) Pairs() Reply {
	if len(r.values) == 0 {
		return r.List()
	}
	fields, mapped := r.values[0].(map[any]any)
	if !mapped {
		return r.List()
	}

	r.values = r.values[1:]
	pairs := Reply{values: make([]any, 0, 2*len(fields))}
	for field, value := range fields {
		pairs.values = append(pairs.values, field, value)
	}
	return pairs
}

// score reads an integer that comes as a double, or as its text.
func (r *Reply) score() int64 {
	switch v := r.Next().(type) {
	case float64:
		return int64(v)
	case string:
		score, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		r.bad = r.bad || err != nil || math.IsNaN(score)
		return int64(score)
	}
	r.bad = true
	return 0
}

// Members reads the rest as members of a sorted set, with their scores if the command requested
// these. If the client speaks RESP3, each is a pair.
func (r *Reply) Members(scored bool) []ports.Cursor {
	var members []ports.Cursor
	for r.More() {
		pair, nested := r.values[0].([]any)
		if nested {
			r.values = r.values[1:]
			one := Reply{values: pair}
			members = append(members, ports.Cursor{ID: one.Text(), Key: one.score()})
			r.bad = r.bad || one.bad
			continue
		}

		at := ports.Cursor{ID: r.Text()}
		if scored {
			at.Key = r.score()
		}
		members = append(members, at)
	}
	return members
}
