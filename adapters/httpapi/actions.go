package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// done is the answer of an action that either succeeds as a whole or fails.
type done struct {
	Done bool `json:"done" doc:"true"`
}

type noBody struct{}

func answered(err error) (*done, error) {
	if err != nil {
		return nil, err
	}
	return &done{true}, nil
}

func (c *call) pause(*noBody) (*done, error)  { return answered(c.inspector.Pause(c.ctx, c.queue)) }
func (c *call) resume(*noBody) (*done, error) { return answered(c.inspector.Resume(c.ctx, c.queue)) }
func (c *call) forget(*noBody) (*done, error) { return answered(c.inspector.Forget(c.ctx, c.queue)) }

type recountReply struct {
	Corrected []recounted `json:"corrected" doc:"the shards whose figures were wrong"`
}

type recounted struct {
	Shard  string `json:"shard" doc:"the shard, as orders/3"`
	Before counts `json:"before" doc:"the figures until now"`
	After  counts `json:"after" doc:"what is there"`
}

func (c *call) recount(*noBody) (*recountReply, error) {
	wrong, err := c.inspector.Recount(c.ctx, c.queue, inspect.BulkOptions{})
	if err != nil {
		return nil, err
	}
	reply := &recountReply{Corrected: []recounted{}}
	for _, w := range wrong {
		reply.Corrected = append(reply.Corrected, recounted{w.Shard.String(), countsOf(&w.Before), countsOf(&w.After)})
	}
	return reply, nil
}

type nodeBody struct {
	Node string `json:"node" doc:"the server: its owner id, or its name if only one has that"`
}

func (b *nodeBody) about(a *asked) { a.Node = b.Node }

func (c *call) drain(b *nodeBody) (*done, error) {
	return answered(c.inspector.Drain(c.ctx, b.Node, true))
}

func (c *call) resumeNode(b *nodeBody) (*done, error) {
	return answered(c.inspector.Drain(c.ctx, b.Node, false))
}

type discardBody struct {
	Shard int      `json:"shard" doc:"the number of the shard"`
	Keys  []string `json:"keys" doc:"the keys of the records, at most 250"`
}

type discardReply struct {
	Discarded int `json:"discarded" doc:"how many were there"`
}

func (c *call) discard(b *discardBody) (*discardReply, error) {
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
	return &discardReply{discarded}, nil
}

type cancelBody struct {
	IDs  []string `json:"ids" doc:"the ids, at most 1,000"`
	Drop bool     `json:"drop,omitempty" doc:"remove the jobs once their handlers have returned, instead of putting them back"`
}

func (b *cancelBody) about(a *asked) { a.IDs = b.IDs }

func (c *call) cancel(b *cancelBody) (*bulkReply, error) {
	mode := inspect.CancelModePutBack
	if b.Drop {
		mode = inspect.CancelModeDrop
	}
	return c.named(b.IDs, func(ctx context.Context, ids []string) (inspect.Result, error) {
		return c.inspector.Cancel(ctx, c.queue, ids, mode, inspect.BulkOptions{})
	})
}

type editBody struct {
	ID    string        `json:"id" doc:"the id of the dead letter"`
	Edits []replacement `json:"edits" doc:"what to replace, at most 1,000 payloads"`
}

type replacement struct {
	Old octets `json:"old" doc:"the payload as it is, byte for byte"`
	New octets `json:"new" doc:"the payload to put in its place"`
}

func (b *editBody) about(a *asked) { a.IDs = []string{b.ID} }

func (c *call) edit(b *editBody) (*bulkReply, error) {
	if len(b.Edits) == 0 || len(b.Edits) > maxNamed {
		return nil, problemBadRequest.with("%d edits; name 1 to %d", len(b.Edits), maxNamed)
	}
	ref := inspect.DeadLetterPayloads{ID: b.ID}
	replace := make(map[string][]byte, len(b.Edits))
	for _, e := range b.Edits {
		before, err := e.Old.bytes()
		if err != nil {
			return nil, err
		}
		if replace[string(before)], err = e.New.bytes(); err != nil {
			return nil, err
		}
		ref.Payloads = append(ref.Payloads, before)
	}
	edit := func(_ string, p core.Payload) ([]byte, bool, error) {
		data, there := replace[string(p.Data)]
		return data, there, nil
	}
	result, err := c.inspector.EditPayloads(c.ctx, c.queue, []inspect.DeadLetterPayloads{ref}, edit, inspect.BulkOptions{})
	return c.bulkReply(&result, err)
}

// match chooses entries of an action on all of a kind. All fields must hold; without any field it
// chooses all.
type match struct {
	Prefix given `json:"prefix,omitempty" doc:"ids that begin so; of jobs to run now, only in a queue with an index of ids"`
	Group  given `json:"group,omitempty" doc:"dead letters of this group of errors: a group of the list of groups; not beside prefix"`
	Error  given `json:"error,omitempty" doc:"entries whose error has this text in it, as it is stored or decoded"`
}

// filter names the match in the log and in checkpoints. It is empty for a match of all.
func (m *match) filter() string {
	if m.Error == "" {
		return ""
	}
	return "error has " + quoted(string(m.Error))
}

func (m *match) holds(text string) bool { return strings.Contains(text, string(m.Error)) }

// given is a text that is not empty if it is given: a text that a client has lost must not match
// everything.
type given string

// UnmarshalJSON implements json.Unmarshaler.
func (g *given) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if text == "" {
		return errors.New("an empty text in match; leave the field out, and {} is all")
	}
	*g = given(text)
	return nil
}
