package inspect_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
)

// forge returns a checkpoint with other values, and a sum that is right.
func forge(t *testing.T, c inspect.Checkpoint, change map[string]any) inspect.Checkpoint {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(string(c))
	if err != nil {
		t.Fatal(err)
	}

	fields := map[string]any{}
	if err := json.Unmarshal(data[:len(data)-crc32.Size], &fields); err != nil {
		t.Fatal(err)
	}

	for name, value := range change {
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}

	if data, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	data = binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
	return inspect.Checkpoint(base64.RawURLEncoding.EncodeToString(data))
}

// A checkpoint of another version, or with impossible content, is refused before the action does
// anything. A checkpoint that was made by hand is accepted if its content is possible.
func TestAForgedCheckpointIsRefused(t *testing.T) {
	for name, change := range map[string]map[string]any{
		"an older version":          {"v": 1},
		"a newer version":           {"v": 3},
		"no version":                {"v": nil},
		"another action":            {"a": "purge all"},
		"another queue":             {"q": "others"},
		"a prefix":                  {"p": "d"},
		"a group":                   {"g": "boom"},
		"no filter":                 {"f": nil},
		"more shards":               {"n": 4},
		"no shards":                 {"n": 0},
		"a shard beyond the last":   {"s": 3},
		"a shard in front":          {"s": -1},
		"a time in front":           {"b": -1},
		"a time behind the last":    {"b": 1 << 60},
		"a place in front":          {"k": -1},
		"an id that no letter has":  {"i": "a\x00"},
		"a long id":                 {"i": strings.Repeat("i", 513)},
		"more done than there are":  {"d": 51},
		"less done than nothing":    {"d": -1},
		"less handled than nothing": {"h": -1},
		"less met than nothing":     {"m": -1},
		"a number that is a text":   {"s": "0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.dead(numbered("d", 50)...)
			first, err := s.Revive(t.Context(), "orders",
				inspect.AllDead(anyLetter, inspect.BulkOptions{Limit: 1, Filter: "any"}))
			if err != nil || first.Handled != 1 {
				t.Fatalf("%+v, %v", first, err)
			}

			revive := func(c inspect.Checkpoint) (inspect.Result, error) {
				return s.Revive(t.Context(), "orders",
					inspect.AllDead(anyLetter, inspect.BulkOptions{Continue: c, Filter: "any"}))
			}

			if r, err := revive(forge(t, first.Checkpoint, change)); !errors.Is(err, inspect.ErrInvalidCheckpoint) ||
				s.counts().Dead != 49 {
				t.Errorf("%+v, %v, and %d dead; want that it is refused", r, err, s.counts().Dead)
			}
			if r, err := revive(forge(t, first.Checkpoint, map[string]any{"s": 0, "k": nil, "i": nil})); err != nil ||
				r.Handled != 50 {
				t.Errorf("%+v, %v; want that all are revived from the beginning", r, err)
			}
		})
	}
}
