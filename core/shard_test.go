package core_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
)

func TestShardVectors(t *testing.T) {
	type vector struct {
		ID     string
		Shards int
		Shard  int
	}
	for _, v := range vectors[vector](t, "shards.json") {
		if got := core.ShardOf(v.ID, v.Shards); got != v.Shard {
			t.Errorf("ShardOf(%q, %d) = %d, want %d", v.ID, v.Shards, got, v.Shard)
		}
	}
}

func TestShardOfAnyCountIsWithinIt(t *testing.T) {
	for _, shards := range []int{math.MinInt, -1, 0, 1} {
		if got := core.ShardOf("id", shards); got != 0 {
			t.Errorf("ShardOf of %d shards = %d, want 0", shards, got)
		}
	}
	for _, shards := range []int{2, core.MaxShards, math.MaxInt32, math.MaxUint32 + 1, math.MaxInt} {
		if got := core.ShardOf("id", shards); got < 0 || got >= shards {
			t.Errorf("ShardOf of %d shards = %d", shards, got)
		}
	}
}

func TestShardsAreListedInOrder(t *testing.T) {
	want := []core.Shard{{Queue: "orders", Index: 0}, {Queue: "orders", Index: 1}, {Queue: "orders", Index: 2}}
	equal(t, "shards", want, core.Shards("orders", 3))
	for _, none := range []int{0, -1} {
		equal(t, "no shards", []core.Shard{}, core.Shards("orders", none))
	}
}

func TestParseShard(t *testing.T) {
	valid := map[string]core.Shard{
		"orders/0":     {Queue: "orders"},
		"a:b_c-d.e/7":  {Queue: "a:b_c-d.e", Index: 7},
		"orders/16383": {Queue: "orders", Index: core.MaxShards - 1},
	}
	for text, want := range valid {
		got, err := core.ParseShard(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseShard(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "/", "orders", "orders/", "/3", "orders/-1", "orders/+3", "orders/03", "orders/ 3", "orders/3/4",
		"orders/x",
		"or ders/3", "or{ders/3", "órders/3", "orders/16384", "orders/9223372036854775807",
		"orders/9223372036854775808",
		strings.Repeat("q", core.MaxQueueNameBytes+1) + "/3",
	} {
		if got, err := core.ParseShard(text); !errors.Is(err, core.ErrInvalidQueue) || got != (core.Shard{}) {
			t.Errorf("ParseShard(%q) = %v, %v; want ErrInvalidQueue", text, got, err)
		}
	}
}

func FuzzParseShard(f *testing.F) {
	for _, text := range []string{"orders/3", "a:b_c-d.e/16383", "/3", "orders/03", "orders/-1", "x/y/3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shard, err := core.ParseShard(text)
		if err != nil {
			if !errors.Is(err, core.ErrInvalidQueue) || shard != (core.Shard{}) {
				t.Fatalf("ParseShard(%q) = %v, %v", text, shard, err)
			}
			return
		}
		if shard.String() != text {
			t.Fatalf("%q reads as %v", text, shard)
		}
		if err := core.ValidateQueue(shard.Queue, shard.Index+1); err != nil {
			t.Fatalf("%q gives an invalid shard: %v", text, err)
		}
	})
}

func ExampleShard_String() {
	fmt.Println(core.Shard{Queue: "orders", Index: core.ShardOf("order-42", 5)})
	// Output: orders/2
}
