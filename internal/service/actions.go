package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// Done is the answer of an action that either succeeds as a whole or fails.
type Done struct {
	Done bool `json:"done" doc:"true"`
}

// NoBody is the input of actions that need none.
type NoBody struct{}

func answered(err error) (*Done, error) {
	if err != nil {
		return nil, err
	}
	return &Done{true}, nil
}

func (c *call) pause(*NoBody) (*Done, error)  { return answered(c.inspector.Pause(c.ctx, c.queue)) }
func (c *call) resume(*NoBody) (*Done, error) { return answered(c.inspector.Resume(c.ctx, c.queue)) }
func (c *call) setMerge(b *MergeBody) (*Done, error) {
	rule, err := core.ParseMergeRule(b.Merge)
	if err != nil {
		return nil, ProblemBadRequest.With("%v", err)
	}
	return answered(c.inspector.SetMerge(c.ctx, c.queue, rule))
}

func (c *call) forget(*NoBody) (*Done, error) { return answered(c.inspector.Forget(c.ctx, c.queue)) }

// MergeBody names a merge rule.
type MergeBody struct {
	Merge string `json:"merge" doc:"the new merge rule: union, newest, latest(n), every or every.last(n)"`
}

// RecountReply is the result of a recount.
type RecountReply struct {
	Corrected []recounted `json:"corrected" doc:"the shards whose figures were wrong, or may have been"`
}

type recounted struct {
	Shard    string `json:"shard" doc:"the shard, as orders/3"`
	Before   Counts `json:"before" doc:"the figures before the recount"`
	After    Counts `json:"after" doc:"the figures after the recount"`
	Repeated bool   `json:"repeated" doc:"whether a call without a reply was repeated, so that before may have its corrections already"`
}

func (c *call) recount(*NoBody) (*RecountReply, error) {
	wrong, err := c.inspector.Recount(c.ctx, c.queue, nil)
	if err != nil {
		return nil, err
	}

	reply := &RecountReply{Corrected: []recounted{}}
	for _, w := range wrong {
		reply.Corrected = append(reply.Corrected, recounted{
			w.Shard.String(),
			countsOf(&w.Before),
			countsOf(&w.After),
			w.Repeated,
		})
	}
	return reply, nil
}

// NodeBody names a server.
type NodeBody struct {
	Node string `json:"node" doc:"the server: its owner id, or its name if no other server has that name"`
}

func (b *NodeBody) about(a *Action) { a.Node = b.Node }

func (c *call) drain(b *NodeBody) (*Done, error) {
	return answered(c.inspector.Drain(c.ctx, b.Node, true))
}

func (c *call) resumeNode(b *NodeBody) (*Done, error) {
	return answered(c.inspector.Drain(c.ctx, b.Node, false))
}

// DiscardBody names records to remove.
type DiscardBody struct {
	Shard int      `json:"shard" doc:"the number of the shard"`
	Keys  []string `json:"keys" doc:"the keys of the records, at most 250"`
}

// DiscardReply is the result of a removal of records.
type DiscardReply struct {
	Discarded int `json:"discarded" doc:"the number of records that were removed"`
}

func (c *call) discard(b *DiscardBody) (*DiscardReply, error) {
	keys := make([]string, len(b.Keys))
	for at, key := range b.Keys {
		var err error
		if keys[at], err = c.opened(key, inspect.ErrInvalidRequest); err != nil {
			return nil, err
		}
	}
	discarded, err := c.inspector.Discard(c.ctx, core.Shard{Queue: c.queue, Index: b.Shard}, keys...)
	if err != nil {
		return nil, err
	}
	return &DiscardReply{discarded}, nil
}

// CancelBody names jobs to end.
type CancelBody struct {
	IDs  []string `json:"ids" doc:"the ids, at most 1,000"`
	Drop bool     `json:"drop,omitempty" doc:"remove the jobs once their handlers have returned, instead of putting them back"`
}

func (b *CancelBody) about(a *Action) { a.IDs = b.IDs }

func (c *call) cancel(b *CancelBody) (*BulkReply, error) {
	mode := inspect.CancelModePutBack
	if b.Drop {
		mode = inspect.CancelModeDrop
	}
	if err := checkNamed(len(b.IDs)); err != nil {
		return nil, err
	}
	result, err := c.inspector.Cancel(c.ctx, c.queue, b.IDs, mode)
	return c.bulkReply(&result, err)
}

// EditBody names payloads of a dead letter or of a queued job, and their replacements.
type EditBody struct {
	ID      string        `json:"id" doc:"the id of the dead letter or the job"`
	Edits   []Replacement `json:"edits" doc:"the replacements, at most 1,000 payloads; one whose old bytes are not there, or are the new ones, changes nothing"`
	NotJSON bool          `json:"not_json,omitempty" doc:"accept new payloads that are not JSON in place of those that are"`
}

// Replacement is a payload and its new content.
type Replacement struct {
	Old Octets `json:"old" doc:"the payload as it is, byte for byte"`
	New Octets `json:"new" doc:"the payload to put in its place"`
}

func (b *EditBody) about(a *Action) { a.IDs = []string{b.ID} }

// edits returns the payloads that a body names, and the function that replaces them.
func (b *EditBody) edits() (named [][]byte, edit inspect.EditFunc, err error) {
	if len(b.Edits) == 0 || len(b.Edits) > MaxNamed {
		return nil, nil, ProblemBadRequest.With("%d edits; name 1 to %d", len(b.Edits), MaxNamed)
	}

	replace := make(map[string][]byte, len(b.Edits))
	for _, e := range b.Edits {
		before, err := octets(&e.Old)
		if err != nil {
			return nil, nil, err
		}
		after, err := octets(&e.New)
		if err != nil {
			return nil, nil, err
		}
		if err := CheckJSON(before, after); err != nil && !b.NotJSON {
			return nil, nil, ProblemNotJSON.With("%v; correct it, or send not_json", err)
		}
		replace[string(before)] = after
		named = append(named, before)
	}

	return named, func(_ string, p core.Payload) ([]byte, bool, error) {
		data, there := replace[string(p.Data)]
		return data, there, nil
	}, nil
}

// CheckJSON returns an error if a payload is JSON and the one to put in its place is not. The error
// names where the JSON breaks.
func CheckJSON(before, after []byte) error {
	if !json.Valid(before) || json.Valid(after) {
		return nil
	}

	var syntax *json.SyntaxError
	var v json.RawMessage
	if errors.As(json.Unmarshal(after, &v), &syntax) {
		upTo := after[:min(max(0, int(syntax.Offset)), len(after))]
		line := 1 + bytes.Count(upTo, []byte("\n"))
		return fmt.Errorf("the new payload is not JSON, and the old one is: line %d: %w", line, syntax)
	}
	return errors.New("the new payload is not JSON, and the old one is")
}

func (c *call) edit(b *EditBody) (*BulkReply, error) {
	named, edit, err := b.edits()
	if err != nil {
		return nil, err
	}
	dead := inspect.DeadPayloads(inspect.DeadLetterPayloads{ID: b.ID, Payloads: named})
	result, err := c.inspector.Edit(c.ctx, c.queue, dead, edit)
	return c.bulkReply(&result, err)
}

func (c *call) editJob(b *EditBody) (*BulkReply, error) {
	named, edit, err := b.edits()
	if err != nil {
		return nil, err
	}
	result, err := c.inspector.EditJob(c.ctx, c.queue, b.ID, named, edit)
	return c.bulkReply(&result, err)
}

// Match chooses entries of an action on all of a kind. All fields must hold; without any field it
// chooses all.
type Match struct {
	Prefix Given `json:"prefix,omitempty" doc:"ids with this prefix; run-now needs a queue with an index of ids for it, and release refuses it"`
	Group  Given `json:"group,omitempty" doc:"dead letters of this group, from the list of groups, or jobs that have failed for an error of this group, from the parts of the list of errors; not together with prefix"`
	State  Given `json:"state,omitempty" doc:"jobs in this state: retrying for those that have failed and are not held, or held"`
	Error  Given `json:"error,omitempty" doc:"entries whose error, as stored or as decoded, contains this text"`
	Tag    Given `json:"tag,omitempty" doc:"entries with this tag"`
}

// filter returns the part of the match that is about errors and tags.
func (m *Match) filter() EntryFilter { return EntryFilter{Error: string(m.Error), Tag: string(m.Tag)} }

// state returns the filter of jobs by the state of the match, nil for all, or a problem for a state
// that no job can be chosen by.
func (m *Match) state() (func(*inspect.QueuedJob) bool, error) {
	switch inspect.ErrorState(m.State) {
	case "":
		return nil, nil
	case inspect.ErrorRetrying:
		return func(j *inspect.QueuedJob) bool { return j.Retries > 0 && !j.Held }, nil
	case inspect.ErrorHeld:
		return func(j *inspect.QueuedJob) bool { return j.Held }, nil
	}
	return nil, ProblemBadRequest.With("state is %q; jobs are chosen by retrying or held", m.State)
}

// EntryFilter selects entries by a part of their error and by a tag. The zero value selects all.
type EntryFilter struct{ Error, Tag string }

// Text names the filter in the log and in checkpoints. It is empty for the zero value.
func (f EntryFilter) Text() string {
	var parts []string
	if f.Error != "" {
		parts = append(parts, "error has "+strconv.Quote(f.Error))
	}
	if f.Tag != "" {
		parts = append(parts, "tag is "+strconv.Quote(f.Tag))
	}
	return strings.Join(parts, ", ")
}

// Holds reports whether the filter selects an entry with an error and some tags.
func (f EntryFilter) Holds(text string, tags []string) bool {
	return strings.Contains(text, f.Error) && (f.Tag == "" || slices.Contains(tags, f.Tag))
}

// Given is a text that is not empty if it is given: a text that a client has lost must not match
// everything.
type Given string

// UnmarshalJSON implements json.Unmarshaler.
func (g *Given) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if text == "" {
		return errors.New("an empty text in match; omit the field, and send {} to match everything")
	}
	*g = Given(text)
	return nil
}
