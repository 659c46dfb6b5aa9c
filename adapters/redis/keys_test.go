package redis

import (
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
)

func TestKeysOfAShardShareItsTag(t *testing.T) {
	s := New(nil, Options{Prefix: "p:"})
	seen := map[string]bool{}
	shard := core.Shard{Queue: "a-b", Index: 3}
	for _, name := range append(s.firstKeys(shard, allKeys), s.channel(shard)) {
		key := name.(string)
		if !strings.HasPrefix(key, "p:{a-b/3}:") || seen[key] {
			t.Errorf("the key %q", key)
		}
		seen[key] = true
	}
}
