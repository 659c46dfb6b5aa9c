package core

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Shard is one partition of a queue.
type Shard struct {
	Queue string
	Index int
}

// String returns the shard in text form, such as orders/3.
func (s Shard) String() string {
	return s.Queue + "/" + strconv.Itoa(s.Index)
}

// ParseShard parses a text that [Shard.String] has returned. It returns [ErrInvalidQueue] for any
// other text.
func ParseShard(text string) (Shard, error) {
	queue, number, ok := strings.Cut(text, "/")
	index, err := strconv.Atoi(number)
	if !ok || err != nil || index < 0 || strconv.Itoa(index) != number {
		return Shard{}, fmt.Errorf("%w: shard %q; write it as queue/3", ErrInvalidQueue, text)
	}
	if err := ValidateQueue(queue, index+1); err != nil {
		return Shard{}, err
	}
	return Shard{Queue: queue, Index: index}, nil
}

// ShardOf returns the index of the shard of an id in a queue with the given number of shards
// (docs/rules.md 6). A number below 1 counts as 1.
func ShardOf(id string, shards int) int {
	if shards <= 1 {
		return 0
	}
	// By the table, since the package's own function would make id escape.
	sum := ^uint32(0)
	for i := range len(id) {
		sum = crc32.IEEETable[byte(sum)^id[i]] ^ sum>>8
	}
	return int(uint64(^sum) % uint64(shards))
}

// Shards returns the shards of a queue with count shards, in order of index. It is empty if count
// is below 1.
func Shards(queue string, count int) []Shard {
	shards := make([]Shard, max(0, count))
	for i := range shards {
		shards[i] = Shard{Queue: queue, Index: i}
	}
	return shards
}

// partOf returns an equal part of a bound of a queue for each of its shards, rounded up. A bound of 0
// or less is none, and its part is 0.
func partOf(bound int64, shards int) int64 {
	if bound <= 0 {
		return 0
	}
	return (bound-1)/int64(max(1, shards)) + 1
}
