package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
)

// Sentence is a text whose values stay values: readers format durations, shorten errors and hide
// ids in their own way. The zero value is the empty sentence.
type Sentence []Part

// Part is a part of a [Sentence]. Kind states which of the other fields it has.
type Part struct {
	Kind PartKind
	// Text is the words of a [PartText] or a [PartBreak], the error of a [PartError], the note of a
	// [PartNote], and the key of a [PartKey].
	Text string
	// Span is the duration of a [PartSpan], and At the time of a [PartTime].
	Span time.Duration
	At   time.Time
	// Shard and ID name the job of a [PartJob]. An empty ID is a job that the reader may not see.
	Shard core.Shard
	ID    string
}

// PartKind is the kind of a [Part].
type PartKind uint8

// The kinds of parts.
const (
	// PartText is words. They name servers, schedules and people, but no id.
	PartText PartKind = iota
	// PartSpan is a duration.
	PartSpan
	// PartTime is a time.
	PartTime
	// PartJob is a job.
	PartJob
	// PartError is the whole text of an error.
	PartError
	// PartNote is a text that an operator has written.
	PartNote
	// PartKey is the key of a rate, such as a tenant.
	PartKey
	// PartBreak ends the first clause, which has the state and its cause. Text is the punctuation.
	PartBreak
)

// String returns the sentence with each part as [Part.String] returns it.
func (s Sentence) String() string { return s.Format(Part.String) }

// Format returns the sentence with the result of format in place of each part.
func (s Sentence) Format(format func(Part) string) string {
	var b strings.Builder
	for _, p := range s {
		b.WriteString(format(p))
	}
	return b.String()
}

// Cut returns the first clause of the sentence, and what follows its [PartBreak], which may be empty.
func (s Sentence) Cut() (clause, rest Sentence) {
	for at := range s {
		if s[at].Kind == PartBreak {
			return s[:at:at], s[at+1:]
		}
	}
	return s, nil
}

// then returns the sentence with a further one behind the end of its clause.
func (s Sentence) then(rest Sentence) Sentence {
	if len(rest) == 0 {
		return s
	}
	return append(append(slices.Clip(s), Part{Kind: PartBreak, Text: "; "}), rest...)
}

// String returns the part as text: a duration as [time.Duration] in whole milliseconds, a time as
// [time.RFC3339] in UTC, and a job as job "42" of orders/3.
func (p Part) String() string {
	switch p.Kind {
	case PartTime:
		return p.At.UTC().Format(time.RFC3339)
	case PartSpan:
		return p.Span.Round(time.Millisecond).String()
	case PartJob:
		if p.ID == "" {
			return "a job of " + p.Shard.String()
		}
		return "job " + strconv.Quote(p.ID) + " of " + p.Shard.String()
	case PartKey:
		return strconv.Quote(p.Text)
	}
	return p.Text
}

// say returns the sentence of a format, in which each %s stands for the next argument: a string, a
// number or a Stringer, which become text, a duration, a time, a Part or a Sentence.
func say(format string, args ...any) (s Sentence) {
	words := strings.Split(format, "%s")
	for at, text := range words {
		if text != "" {
			s = append(s, Part{Text: text})
		}
		if at == len(words)-1 {
			break
		}

		switch arg := args[at].(type) {
		case Sentence:
			s = append(s, arg...)
		case Part:
			s = append(s, arg)
		case time.Time:
			s = append(s, Part{Kind: PartTime, At: arg})
		case time.Duration:
			s = append(s, Part{Kind: PartSpan, Span: arg})
		default:
			s = append(s, Part{Text: fmt.Sprint(arg)})
		}
	}
	return s
}

// and returns the sentence with the parts of another one behind it.
func (s Sentence) and(format string, args ...any) Sentence {
	return append(s[:len(s):len(s)], say(format, args...)...)
}
