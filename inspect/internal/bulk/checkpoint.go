package bulk

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ErrInvalidCheckpoint is inspect.ErrInvalidCheckpoint.
var ErrInvalidCheckpoint = errors.New("invalid checkpoint")

// version is the version of the text.
const version = 2

// maxCheckpoint is the maximum size of the text in bytes. The text has an id, a prefix, a reason
// and the name of a queue, escaped, and some numbers.
const maxCheckpoint = 16 << 10

// Standing is the content of a checkpoint: the action, and how far it is.
type Standing struct {
	Version int    `json:"v"`
	Action  string `json:"a"`
	Queue   string `json:"q"`
	// Prefix is BulkOptions.Prefix.
	Prefix string `json:"p,omitempty"`
	// Group is BulkOptions.Group.
	Group string `json:"g,omitempty"`
	// Filter is the digest of BulkOptions.Filter, empty for an action without a match.
	Filter string `json:"f,omitempty"`
	// Shards is the shard count. With another shard count, ids belong to other shards.
	Shards int          `json:"n"`
	Before core.Instant `json:"b"`
	// Shard is the first shard that is not finished, and (Key, ID) the place in it.
	Shard int    `json:"s"`
	Key   int64  `json:"k,omitempty"`
	ID    string `json:"i,omitempty"`
	// Schedules is true if a move is finished with the jobs. The place in the shard is then
	// (Name, ID), and Different is the number of schedules that were left since the target has
	// others.
	Schedules bool   `json:"c,omitempty"`
	Name      string `json:"o,omitempty"`
	Different int    `json:"e,omitempty"`

	Done    int `json:"d"`
	Total   int `json:"t"`
	Handled int `json:"h"`
	// Met is that of the Tally. Part is true if Total counts more entries than the action applies to.
	Met  int  `json:"m"`
	Part bool `json:"u,omitempty"`
	// Audit is the ID of the action in the audit, where all calls of the action are one action.
	Audit string `json:"w,omitempty"`
	// Actor is the digest of the name of the calls' actor. Reason is the actor's reason, as in the
	// audit.
	Actor  string `json:"x,omitempty"`
	Reason string `json:"y,omitempty"`
}

// text returns the checkpoint.
func (s *Standing) text() (string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	data = binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
	return base64.RawURLEncoding.EncodeToString(data), nil
}

// parse parses the text of a checkpoint.
func parse(text string) (s Standing, err error) {
	invalid := func(why string) (Standing, error) {
		return Standing{}, fmt.Errorf("%w: %s; pass it as it was returned, unchanged", ErrInvalidCheckpoint, why)
	}

	if len(text) > maxCheckpoint {
		return invalid("it is too long")
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < crc32.Size {
		return invalid("it is damaged")
	}

	body := data[:len(data)-crc32.Size]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(data[len(body):]) || json.Unmarshal(body, &s) != nil {
		return invalid("it is damaged")
	}
	if s.Version != version {
		return Standing{}, fmt.Errorf(
			"%w: it has version %d, this package reads %d; start the action again with the same Before",
			ErrInvalidCheckpoint, s.Version, version)
	}

	// A text with the right checksum may still be forged.
	if s.Shard < 0 || s.Shard >= s.Shards || s.Before < 0 || s.Before > core.MaxInstant ||
		s.Key < 0 || s.Done < 0 || s.Done > s.Total || s.Handled < 0 || s.Met < 0 ||
		s.ID != "" && core.ValidateID(s.ID) != nil {
		return invalid("its content is out of range")
	}
	return s, nil
}

// sameAction returns [ErrInvalidCheckpoint] if s was written by another action.
func (s *Standing) sameAction(now *Standing) error {
	for _, c := range []struct {
		what     string
		was, now any
	}{
		{"action", s.Action, now.Action},
		{"queue", s.Queue, now.Queue},
		{"prefix", s.Prefix, now.Prefix},
		{"group", s.Group, now.Group},
		{"filter", s.Filter, now.Filter},
	} {
		if c.was != c.now {
			return fmt.Errorf("%w: its %s is %q, and that of this call is %q; continue with the same",
				ErrInvalidCheckpoint, c.what, c.was, c.now)
		}
	}
	return nil
}

func (s *Standing) cursor() ports.Cursor { return ports.Cursor{Key: s.Key, ID: s.ID} }

// Digest returns the form in which a checkpoint keeps the name of a filter or an actor.
func Digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
