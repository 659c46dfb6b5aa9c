package redis

import (
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
)

// A script works on one slot, and publishes to channels of it alone.
func TestKeysShareATag(t *testing.T) {
	s := New(nil, Options{Prefix: "p:"})
	shard := core.Shard{Queue: "a-b", Index: 3}

	for tag, names := range map[string][]any{
		"p:{a-b/3}:": append(s.firstKeys(shard, allKeys), s.channel(shard)),
		"p:{a-b/0}:": append(
			s.firstKeys(core.Shard{Queue: "a-b"}, allKeys),
			append(s.historyKeys("a-b"), s.daysKey("a-b"))...,
		),
		"p:{/nodes}:": {s.nodesKey(), s.statusKey(), s.channel(core.Shard{})},
	} {
		seen := map[string]bool{}
		for _, name := range names {
			key := name.(string)
			if !strings.HasPrefix(key, tag) || seen[key] {
				t.Errorf("the key %q", key)
			}
			seen[key] = true
		}
	}
}
