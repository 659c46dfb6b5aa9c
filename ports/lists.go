package ports

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SortBy is what a list of queued jobs is sorted by, and which jobs it has.
type SortBy uint8

const (
	// ByTime lists all queued jobs by (PerformAt, id).
	ByTime SortBy = iota
	// ByID lists all queued jobs by id, where the queue keeps that index.
	ByID
	// RetryingByTime lists the jobs with a failure by (PerformAt, id).
	RetryingByTime
	// RetryingByID lists the jobs with a failure by id.
	RetryingByID
	// RetryingByCount lists the jobs with a failure by (RetryCount, id).
	RetryingByCount
)

// String returns the name of the constant.
func (s SortBy) String() string {
	switch s {
	case ByTime:
		return "ByTime"
	case ByID:
		return "ByID"
	case RetryingByTime:
		return "RetryingByTime"
	case RetryingByID:
		return "RetryingByID"
	case RetryingByCount:
		return "RetryingByCount"
	}
	return fmt.Sprintf("SortBy(%d)", uint8(s))
}

// Cursor is a place in a list: the sort key and the id of the last entry seen.
// The zero value is the start. Lists by id ignore Key. A store may refuse one whose ID no entry can have, with
// ErrInvalidRequest.
type Cursor struct {
	Key int64
	ID  string
}

// Default and largest sizes of a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// PageRequest asks for a page of a list. What it costs depends on how many shards it is about
// and on Limit, not on how long the list is.
type PageRequest struct {
	Queue string
	// Shards are the indexes of the shards to list, in any order; nil is all of them, an
	// empty list none. One that is named twice counts once.
	Shards []int
	// After is the last entry of the page before, in the list's direction.
	After Cursor
	// From is the value that the list begins at, inclusive, in its direction: a Key in lists by
	// time or count, which ignore its ID, and an ID in lists by id, which ignore its Key. nil is
	// the list's own beginning. It is ignored where After is set, so that the same request with
	// another After asks for the pages that follow.
	From *Cursor
	// Prefix limits a list by id to the ids that begin with it; empty is all.
	Prefix string
	// Descending turns the list around.
	Descending bool
	// Limit is how many entries to return at most: 0 is DefaultPage, above MaxPage is
	// MaxPage.
	Limit int
	// Payloads is how many payloads of each entry to return, lowest first. Below 1
	// none are returned; the view's Count is how many there are.
	Payloads int
	// ErrorBytes is how many bytes of each error text to return at most, as [core.CutText] cuts
	// it: 0 is the whole text, below 0 none of it.
	ErrorBytes int
	// MaxCount is how many payloads of each entry to count at most: the view's Count is no more. 0 counts
	// them all, below 0 none. Some stores read what they count.
	MaxCount int
}

// Counted returns the Count of an entry with so many payloads, as MaxCount has it.
func (r PageRequest) Counted(payloads int) int {
	if r.MaxCount == 0 {
		return payloads
	}
	return min(payloads, max(0, r.MaxCount))
}

// Size returns Limit with its default and bound applied.
func (r PageRequest) Size() int {
	if r.Limit <= 0 {
		return DefaultPage
	}
	return min(r.Limit, MaxPage)
}

// Validate returns [ErrInvalidRequest] for a shard below 0, a Prefix in a list that is not by id, and
// one that is not valid UTF-8 or has a control character, as no id has; and the same for From's ID.
// [Inspector.Claimed] is not by id.
func (r *PageRequest) Validate() error { return r.validate(false) }

func (r *PageRequest) validate(byID bool) error {
	if !byID && r.Prefix != "" {
		return fmt.Errorf("%w: prefix %q of a list that is not by id; sort it by id", ErrInvalidRequest, r.Prefix)
	}
	if err := validatePrefix(r.Prefix); err != nil {
		return err
	}
	if byID && r.From != nil {
		if err := validatePrefix(r.From.ID); err != nil {
			return err
		}
	}
	return validateShards(r.Shards)
}

// validatePrefix refuses what no id can begin with.
func validatePrefix(prefix string) error {
	if !utf8.ValidString(prefix) || strings.ContainsFunc(prefix, unicode.IsControl) {
		return fmt.Errorf("%w: no id begins with %q, which is not UTF-8 or has a control character", ErrInvalidRequest, prefix)
	}
	return nil
}

func validateShards(shards []int) error {
	for _, index := range shards {
		if index < 0 {
			return fmt.Errorf("%w: shard %d", ErrInvalidRequest, index)
		}
	}
	return nil
}

// JobsRequest asks for a page of queued jobs.
type JobsRequest struct {
	PageRequest
	// SortBy is ByTime unless set.
	SortBy SortBy
	// Fresh leaves jobs with a failure out, of ByTime and ByID.
	Fresh bool
}

// ByID reports whether the list is in order of id.
func (r *JobsRequest) ByID() bool { return r.SortBy == ByID || r.SortBy == RetryingByID }

// Validate returns [ErrInvalidRequest] for an order that is none, Fresh of jobs with a failure, and
// what [PageRequest.Validate] refuses.
func (r *JobsRequest) Validate() error {
	if r.SortBy > RetryingByCount {
		return fmt.Errorf("%w: jobs can't be sorted by %v; use a constant of ports.SortBy", ErrInvalidRequest, r.SortBy)
	}
	if r.Fresh && r.SortBy != ByTime && r.SortBy != ByID {
		return fmt.Errorf("%w: fresh jobs in a list of those with a failure; sort by ByTime or ByID", ErrInvalidRequest)
	}
	return r.validate(r.ByID())
}

// MorgueRequest asks for a page of dead letters.
type MorgueRequest struct {
	PageRequest
	// ByID lists by id instead of by (ChangedAt, id).
	ByID bool
	// Group limits a list by time to the dead letters of a group, as [Inspector] counts them; empty is all.
	Group string
}

// Validate returns [ErrInvalidRequest] for a Group in a list by id, one that no dead letter can be of, and what
// [PageRequest.Validate] refuses.
func (r *MorgueRequest) Validate() error {
	if r.ByID && r.Group != "" {
		return fmt.Errorf("%w: group %q of a list by id; list it by time", ErrInvalidRequest, r.Group)
	}
	if err := validateGroup(r.Group); err != nil {
		return err
	}
	return r.validate(r.ByID)
}
