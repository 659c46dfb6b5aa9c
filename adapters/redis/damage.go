package redis

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// damagedRecord is in the error of a script that can't read what is stored of an id: place and id, in hex.
var damagedRecord = regexp.MustCompile(`damaged: ([qckd]) ([0-9a-f]*) `)

// damagedError is that of a script that can't read a record, and so has written nothing.
type damagedError struct {
	place, id string
	text      string
}

// newDamagedError returns the error of which damagedRecord has found the parts.
func newDamagedError(found []string, err error) error {
	id, badHex := hex.DecodeString(found[2])
	if badHex != nil {
		return fmt.Errorf("redis: %v", err)
	}
	return &damagedError{place: found[1], id: string(id), text: err.Error()}
}

// Error implements error.
func (e *damagedError) Error() string {
	return fmt.Sprintf("redis: what is stored of %s %q can't be read: %s", places[e.place], e.id, e.text)
}

func isDamage(err error) bool { return err != nil && damagedRecord.MatchString(err.Error()) }

// mostSetAside is how many records one call sets aside. A shard with more of them works on call by call.
const mostSetAside = 1000

// exchangeReadable is exchange, but what a script can't read it sets aside, and runs the script again: that has
// written nothing.
func (s *Store) exchangeReadable(ctx context.Context, calls []call) []outcome {
	outcomes := s.exchange(ctx, calls)
	for i := range outcomes {
		for range mostSetAside {
			damaged, ok := errors.AsType[*damagedError](outcomes[i].err)
			if !ok || ctx.Err() != nil {
				break
			}
			if err := s.setAside(ctx, calls[i].keys[0].(string), damaged); err != nil {
				outcomes[i].err = fmt.Errorf("%w; setting it aside failed: %w", damaged, err)
				break
			}
			outcomes[i] = s.exchange(ctx, calls[i:i+1])[0]
		}
	}
	return outcomes
}

// shardOf returns the name of the shard that keys belong to which begin with base: what is in braces.
func shardOf(base string) string {
	_, name, _ := strings.Cut(base, "{")
	name, _, _ = strings.Cut(name, "}")
	return name
}

// setAside sets a record aside in the shard whose first key is given.
func (s *Store) setAside(ctx context.Context, meta string, damaged *damagedError) error {
	base, keys := strings.TrimSuffix(meta, keySuffixes[keyMeta]), make([]any, allKeys)
	for i, suffix := range keySuffixes {
		keys[i] = base + suffix
	}
	o := s.exchange(ctx, []call{{script: setAsideScript, keys: keys, args: []any{s.now(), damaged.place, damaged.id}}})[0]
	if o.err == nil && o.value == int64(1) {
		s.logger.Error("a record that can't be read was set aside; Inspector.Quarantined shows it, and Discard removes it",
			"shard", shardOf(base), "place", places[damaged.place].String(), "id", damaged.id, "error", damaged.text)
	}
	return o.err
}
