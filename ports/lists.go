package ports

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SortBy is the order of a list of queued jobs, and the choice of jobs in it.
type SortBy uint8

const (
	// ByTime lists all queued jobs by (PerformAt, id).
	ByTime SortBy = iota
	// ByID lists all queued jobs by id. It needs a queue that was declared with IndexIDs.
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

// Cursor is a position in a list: the sort key and the id of the last entry of a page. The zero
// value is the start of the list. Lists by id ignore Key. A store may refuse a cursor whose ID no
// entry can have, with ErrInvalidRequest.
type Cursor struct {
	// Key is the time in microseconds or the RetryCount by which the list is ordered.
	Key int64
	ID  string
}

// Default and maximum size of a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// PageRequest is a request for a page of a list. Its cost depends on the number of requested shards
// and on Limit, not on the length of the list.
type PageRequest struct {
	Queue string
	// Shards are the indexes of the shards to list, in any order. nil means all shards, an empty
	// list means no shard. A repeated index counts once.
	Shards []int
	// After is the Next of the previous page. The zero value requests the first page.
	After Cursor
	// From is the value at which the list begins, inclusive, in the list's direction. Lists by time
	// or count use its Key and ignore its ID; lists by id use its ID and ignore its Key. nil means
	// the beginning of the list. From is ignored if After is set, so the same request with another
	// After requests the next page.
	From *Cursor
	// Prefix limits a list by id to the ids with that prefix. Empty means all ids.
	Prefix string
	// Descending reverses the order of the list.
	Descending bool
	// Limit is the maximum number of entries to return. A value below 1 means DefaultPage, a value
	// above MaxPage means MaxPage.
	Limit int
	// Payloads is the maximum number of payloads to return of each entry, lowest first. Below 1, no
	// payload is returned. The view's Count does not depend on it.
	Payloads int
	// ErrorBytes bounds the failures of each entry, as [core.Failures.Short] does. 0 means all of
	// them, whole. Another value means only the newest, with at most that number of bytes of its text,
	// or with no text below 0.
	ErrorBytes int
	// MaxCount is the maximum number of payloads to count of each entry; the Count of the view is
	// at most MaxCount. 0 counts all payloads, a value below 0 counts none. Some stores read the
	// payloads that they count.
	MaxCount int
	// Marks lists the marks that are kept beside records (docs/rules.md 16) instead of the records, in
	// order of the time when they were raised. Only [Inspector].Past has it.
	Marks bool
}

// Counted returns the Count of an entry with the given number of payloads, limited by MaxCount.
func (r PageRequest) Counted(payloads int) int { return counted(payloads, r.MaxCount) }

// counted returns the number of payloads, limited by most: 0 is no limit, and below 0 the result is
// 0.
func counted(payloads, most int) int {
	if most == 0 {
		return payloads
	}
	return min(payloads, max(0, most))
}

// Size returns Limit with its default and maximum applied.
func (r PageRequest) Size() int {
	if r.Limit <= 0 {
		return DefaultPage
	}
	return min(r.Limit, MaxPage)
}

// Validate returns [ErrInvalidRequest] for a shard below 0 and for a Prefix, since
// [Inspector.Claimed] does not list by id. It does not check the ID of From, which that list
// ignores.
func (r *PageRequest) Validate() error { return r.validate(false) }

// validate checks the request for a list that is by id or not.
func (r *PageRequest) validate(byID bool) error {
	if !byID && r.Prefix != "" {
		return fmt.Errorf("%w: prefix %q in a list that is not sorted by id; sort it by id",
			ErrInvalidRequest, r.Prefix)
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

// validatePrefix refuses a text that no id can begin with.
func validatePrefix(prefix string) error {
	if !utf8.ValidString(prefix) || strings.ContainsFunc(prefix, unicode.IsControl) {
		return fmt.Errorf("%w: no id can begin with %q, which is not UTF-8 or has a control character",
			ErrInvalidRequest, prefix)
	}
	return nil
}

func validateShards(shards []int) error {
	for _, index := range shards {
		if index < 0 {
			return fmt.Errorf("%w: shard %d; shards are numbered from 0", ErrInvalidRequest, index)
		}
	}
	return nil
}

// JobsRequest is a request for a page of queued jobs.
type JobsRequest struct {
	PageRequest
	// SortBy is the order of the list. The zero value is ByTime.
	SortBy SortBy
	// Fresh leaves jobs with a failure out of lists ByTime and ByID.
	Fresh bool
}

// ByID reports whether the list is in order of id.
func (r *JobsRequest) ByID() bool { return r.SortBy == ByID || r.SortBy == RetryingByID }

// Validate returns [ErrInvalidRequest] for an unknown order, for Fresh in a list of jobs with a
// failure, for a shard below 0, and for a Prefix in a list that is not by id. In a list by id it
// returns the same for a Prefix or an ID of From that is not valid UTF-8 or has a control
// character, since no id has it.
func (r *JobsRequest) Validate() error {
	if r.SortBy > RetryingByCount {
		return fmt.Errorf("%w: jobs can't be sorted by %v; use a constant of ports.SortBy", ErrInvalidRequest, r.SortBy)
	}
	if r.Fresh && r.SortBy != ByTime && r.SortBy != ByID {
		return fmt.Errorf("%w: fresh jobs in a list of jobs with a failure; sort by ByTime or ByID", ErrInvalidRequest)
	}
	return r.validate(r.ByID())
}

// MorgueRequest is a request for a page of dead letters.
type MorgueRequest struct {
	PageRequest
	// ByID lists dead letters by id instead of by (ChangedAt, id).
	ByID bool
	// Group limits a list by time to the dead letters of that group, as [Inspector].Groups counts
	// them. Empty means all groups.
	Group string
}

// Validate returns [ErrInvalidRequest] for a Group in a list by id, for a Group that no dead letter
// can have, and for a shard, a Prefix or a From as [JobsRequest.Validate] does.
func (r *MorgueRequest) Validate() error {
	if r.ByID && r.Group != "" {
		return fmt.Errorf("%w: group %q in a list by id; list it by time", ErrInvalidRequest, r.Group)
	}
	if err := validateGroup(r.Group); err != nil {
		return err
	}
	return r.validate(r.ByID)
}
