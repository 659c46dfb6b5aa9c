package core

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits (docs/rules.md 1).
const (
	// MaxIDBytes is the maximum size of an id in bytes.
	MaxIDBytes = 512
	// MaxMetaBytes is the maximum size of the Meta of a payload in bytes.
	MaxMetaBytes = 256
	// MaxNodeBytes is the maximum size in bytes of the name of a server in a stored failure.
	MaxNodeBytes = 255
	// MaxErrorBytes is the maximum size of a stored error text in bytes.
	MaxErrorBytes = 4 << 10
	// DefaultMaxPayloadBytes is the default maximum size of a payload in bytes.
	DefaultMaxPayloadBytes = 512 << 10
	// MaxQueueNameBytes is the maximum size of a queue's name in bytes.
	MaxQueueNameBytes = 128
	// MaxShards is the maximum number of shards of a queue: one for each slot of a Redis Cluster.
	MaxShards = 16384
)

// Errors of validation. Each is returned wrapped, with the mistake and its cure.
var (
	// ErrInvalidID, ErrInvalidPayload, ErrInvalidScore and ErrInvalidTime report an entry that
	// docs/rules.md 1 refuses.
	ErrInvalidID      = errors.New("invalid id")
	ErrInvalidPayload = errors.New("invalid payload")
	ErrInvalidScore   = errors.New("invalid score")
	ErrInvalidTime    = errors.New("invalid time")
	// ErrInvalidRule reports a push rule of an unknown kind or with a negative limit, or a merge
	// rule that [MergeRule.Validate] refuses.
	ErrInvalidRule = errors.New("invalid rule")
	// ErrInvalidQueue reports an invalid name, shard count or option of a queue.
	ErrInvalidQueue = errors.New("invalid queue")
	// ErrInvalidOptions reports an invalid option or argument of a server, a client, a handler, a
	// push or an inspector, such as nil or a negative timeout.
	ErrInvalidOptions = errors.New("invalid options")
)

// Entry is one payload to push for an id.
type Entry struct {
	ID string
	Payload
	// When is the time at which the job may run if the entry creates the job. The zero value is the
	// store's now. If the id has a queued job, the rule of the push decides the time, or the rule
	// of an [Urgent] entry.
	When When
	// Tags are united with those of the job.
	Tags Tags
	// OnceIn is for how long equal entries are dropped once this one is accepted, [MinOnce] to
	// [MaxOnce] (docs/rules.md 17). If one was accepted within its OnceIn before, this one is a
	// repeat and is dropped. 0 means that the entry is neither dropped nor remembered.
	OnceIn time.Duration
}

// State returns the state of the job that the entry creates if its id has no queued job.
func (e *Entry) State(now Instant) State {
	s := Pushed(e.When, now)
	s.Tags = e.Tags
	return s
}

// Validate returns [ErrInvalidID], [ErrInvalidPayload], [ErrInvalidScore], [ErrInvalidTag] or
// [ErrInvalidTime] for an entry that docs/rules.md 1 or 17 refuses. It does not check the length of
// Data, since its limit is an option of the queue.
func (e *Entry) Validate() error {
	if err := ValidateID(e.ID); err != nil {
		return err
	}
	if err := validateScore(e.Score); err != nil {
		return err
	}
	if len(e.Meta) > MaxMetaBytes {
		return fmt.Errorf("%w: Meta has %d bytes, at most %d are allowed; shorten it",
			ErrInvalidPayload, len(e.Meta), MaxMetaBytes)
	}
	if err := e.Tags.Validate(); err != nil {
		return err
	}
	if err := validateOnce(e.OnceIn); err != nil {
		return err
	}
	return e.When.validate()
}

// ValidateID returns [ErrInvalidID] unless id is non-empty UTF-8 of at most
// [MaxIDBytes] without control characters.
func ValidateID(id string) error {
	return validateText(id, MaxIDBytes, ErrInvalidID,
		"give the id of the entity that the job is about", "use a hash of it")
}

// validateText returns an error of the given kind unless text is non-empty UTF-8 of at most a
// number of bytes without control characters. The error names the cure for an empty text, or for
// one that is too long.
func validateText(text string, most int, kind error, ifEmpty, ifLong string) error {
	switch {
	case text == "":
		return fmt.Errorf("%w: it is empty; %s", kind, ifEmpty)
	case len(text) > most:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed; %s", kind, len(text), most, ifLong)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: %q is not UTF-8; encode it", kind, text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%w: %q has a control character; encode it", kind, text)
	}
	return nil
}

// validateScore returns ErrInvalidScore for NaN and the infinities.
func validateScore(score float64) error {
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return fmt.Errorf("%w: %v; use a finite number", ErrInvalidScore, score)
	}
	return nil
}

// NormalScore returns the score in the form in which stores keep it: -0 becomes 0.
func NormalScore(score float64) float64 {
	return score + 0
}

// ValidateQueue returns [ErrInvalidQueue] unless name is 1 to [MaxQueueNameBytes] of
// ASCII letters, digits and "_-.:", but not "." or "..", and shards is within 1 … [MaxShards].
func ValidateQueue(name string, shards int) error {
	err := validateQueueName(name)
	if shards < 1 || shards > MaxShards {
		err = errors.Join(err, fmt.Errorf("%w: %q with %d shards; give 1 to %d",
			ErrInvalidQueue, name, shards, MaxShards))
	}
	return err
}

func validateQueueName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty; give one", ErrInvalidQueue)
	case len(name) > MaxQueueNameBytes:
		return fmt.Errorf("%w: the name has %d bytes, at most %d are allowed; choose a shorter one",
			ErrInvalidQueue, len(name), MaxQueueNameBytes)
	case name == "." || name == "..":
		return fmt.Errorf("%w: name %q, which means a directory in paths and URLs; choose another",
			ErrInvalidQueue, name)
	case strings.ContainsFunc(name, notInQueueName):
		return fmt.Errorf("%w: name %q; use letters, digits and _ - . : only", ErrInvalidQueue, name)
	}
	return nil
}

func notInQueueName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_-.:", r)
}

// Text returns a text in the form in which stores keep names and errors: UTF-8 without NUL, which
// some stores refuse. Each NUL and each run of invalid bytes is replaced by U+FFFD. A valid text is
// returned unchanged.
func Text(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// ErrorText returns an error's text in the form in which a job keeps it: a [Text], truncated
// between characters to at most [MaxErrorBytes].
func ErrorText(text string) string { return CutText(Text(text), MaxErrorBytes) }

// CutText truncates a text between characters to at most the given number of bytes. 0 means the
// whole text, a number below 0 means an empty text.
func CutText(text string, most int) string {
	if most < 0 {
		return ""
	}
	if most == 0 || len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
