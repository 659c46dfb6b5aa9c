package skeintest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// Outcome is the way in which an execution of a job ended.
type Outcome string

const (
	// Done is success.
	Done Outcome = "done"
	// Failed is a failure that is retried, or one without a retry left in a queue with skein.Hold.
	Failed Outcome = "failed"
	// Exhausted is a failure without a retry left. The first payload went to the morgue, and the
	// other payloads start anew.
	Exhausted Outcome = "exhausted"
	// Buried means that the payloads went to the morgue, for example by skein.Bury.
	Buried Outcome = "buried"
	// Snoozed means that the job was requeued for later, for example by skein.Snooze.
	Snoozed Outcome = "snoozed"
	// Awaiting means that the job was requeued until the next push, by skein.Await.
	Awaiting Outcome = "awaiting"
	// Untouched means that the job was requeued unchanged because the Drain was stopped, or that
	// the job was cancelled while it ran.
	Untouched Outcome = "untouched"
)

// Event is one execution of a job.
type Event struct {
	// At is when the execution began, measured from the start of the store's clock.
	At time.Duration
	// Queue and ID name the job.
	Queue string
	ID    string
	// Payloads are the payloads that the handler was called with, as they are stored, in order. A
	// payload is quoted like a Go string if it is empty, if it has characters that don't print, or
	// if it has spaces and is not JSON.
	Payloads []string
	// Outcome is the way in which the execution ended.
	Outcome Outcome
	// Error is the text of a failure or bury. If the job itself has no error, it is the text of the
	// first payload that was buried by itself. Empty means no error.
	Error string
	// Buried are those of the Payloads that went to the morgue.
	Buried []string
	// Next is when the requeued job may run again, measured like At. It is 0 if no job was
	// requeued.
	Next time.Duration
}

// String returns the event in one line: At, Queue, ID, Payloads, Outcome, the first line of Error,
// and Buried if only some payloads were buried:
//
//	1m0s orders order-1 [1 2] exhausted: no such item; buried [1]
func (e Event) String() string {
	line := fmt.Sprintf("%v %s %s %v %s", e.At, e.Queue, e.ID, e.Payloads, e.Outcome)
	if e.Error != "" {
		text, _, _ := strings.Cut(e.Error, "\n")
		line += ": " + text
	}
	if n := len(e.Buried); n > 0 && n < len(e.Payloads) {
		line += fmt.Sprintf("; buried %v", e.Buried)
	}
	return line
}

// Events are executions in the order in which they ended.
type Events []Event

// Of returns the events of an id, in all queues.
func (e Events) Of(id string) Events {
	return slices.DeleteFunc(slices.Clone(e), func(event Event) bool { return event.ID != id })
}

// String returns the events, one per line.
func (e Events) String() string { return strings.Join(e.lines(), "\n") }

func (e Events) lines() []string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].String()
	}
	return lines
}

// printed returns payloads as an Event shows them.
func printed(payloads []core.Payload) []string {
	var list []string
	for i := range payloads {
		list = append(list, printable(payloads[i].Data))
	}
	return list
}

// printable returns a payload as it is if a reader can see where the payload ends. Otherwise it
// returns the payload quoted.
func printable(data []byte) string {
	text := string(data)
	prints := !strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) })
	if prints && text != "" && (json.Valid(data) || !strings.Contains(text, " ")) {
		return text
	}
	return strconv.Quote(text)
}

// sinceStart returns an instant of the store as an Event shows it.
func sinceStart(t core.Instant) time.Duration { return t.Sub(core.InstantOf(start())) }
