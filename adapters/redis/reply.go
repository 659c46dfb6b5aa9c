package redis

import (
	"errors"
	"fmt"
	"strconv"
)

// errReply is for a reply that none of the store's scripts returns.
var errReply = errors.New("redis: the reply of a script can't be read; check whether a proxy between this program and Redis changes replies")

// reply reads the values that a script returned, one after another. After a value of an unexpected
// kind, and after the end, it returns zeros, and is bad.
type reply struct {
	values []any
	bad    bool
}

func replyOf(value any) reply {
	values, ok := value.([]any)
	return reply{values: values, bad: !ok}
}

func (r *reply) next() any {
	if len(r.values) == 0 {
		r.bad = true
		return nil
	}
	v := r.values[0]
	r.values = r.values[1:]
	return v
}

func (r *reply) text() string {
	text, ok := r.next().(string)
	r.bad = r.bad || !ok
	return text
}

// optional reads a text or nil; ok is false for nil.
func (r *reply) optional() (text string, ok bool) {
	v := r.next()
	text, ok = v.(string)
	r.bad = r.bad || !ok && v != nil
	return text, ok
}

func (r *reply) int() int64 {
	n, ok := r.next().(int64)
	r.bad = r.bad || !ok
	return n
}

// parsed reads an integer that comes as text.
func (r *reply) parsed() int64 {
	n, err := strconv.ParseInt(r.text(), 10, 64)
	r.bad = r.bad || err != nil
	return n
}

func (r *reply) list() reply {
	inner := replyOf(r.next())
	r.bad = r.bad || inner.bad
	return inner
}

// more reports whether there are values left to read.
func (r *reply) more() bool { return len(r.values) > 0 && !r.bad }

// err is errReply if something could not be read.
func (r *reply) err() error {
	if r.bad {
		return fmt.Errorf("%w", errReply)
	}
	return nil
}
