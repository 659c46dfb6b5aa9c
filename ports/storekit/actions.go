package storekit

import (
	"encoding/json"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// action is an operator's action as stores keep it, without its ID and At, which stores keep by
// themselves. It is JSON, which people can read and which programs of different versions can
// exchange.
type action struct {
	Verb    string        `json:"verb"`
	Actor   string        `json:"actor,omitempty"`
	From    string        `json:"from,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Queue   string        `json:"queue,omitempty"`
	IDs     []string      `json:"ids,omitempty"`
	Named   int           `json:"named,omitempty"`
	Prefix  string        `json:"prefix,omitempty"`
	Group   string        `json:"group,omitempty"`
	Filter  string        `json:"filter,omitempty"`
	Ended   bool          `json:"ended,omitempty"`
	Handled int           `json:"handled,omitempty"`
	Took    time.Duration `json:"took_ns,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// EncodeAction returns an action, without its ID and At, as a text for [DecodeAction].
func EncodeAction(a *ports.Action) (string, error) {
	text, err := json.Marshal(action{
		Verb:    a.Verb,
		Actor:   a.Actor,
		From:    a.From,
		Reason:  a.Reason,
		Queue:   a.Queue,
		IDs:     a.IDs,
		Named:   a.Named,
		Prefix:  a.Prefix,
		Group:   a.Group,
		Filter:  a.Filter,
		Ended:   a.Ended,
		Handled: a.Handled,
		Took:    a.Took,
		Error:   a.Error,
	})
	return string(text), err
}

// DecodeAction decodes a text of [EncodeAction], of this version of the package or another. It
// returns the action with the given ID and At.
func DecodeAction(id string, at core.Instant, text string) (ports.Action, error) {
	var a action
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return ports.Action{}, err
	}

	return ports.Action{
		ID:      id,
		At:      at,
		Verb:    a.Verb,
		Actor:   a.Actor,
		From:    a.From,
		Reason:  a.Reason,
		Queue:   a.Queue,
		IDs:     a.IDs,
		Named:   a.Named,
		Prefix:  a.Prefix,
		Group:   a.Group,
		Filter:  a.Filter,
		Ended:   a.Ended,
		Handled: a.Handled,
		Took:    a.Took,
		Error:   a.Error,
	}, nil
}
