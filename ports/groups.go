package ports

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// GroupsRequest is a request for the number of dead letters in each group of a queue.
type GroupsRequest struct {
	Queue string
	// Shards are the indexes of the shards to count, in any order. nil means all shards, an empty
	// list means no shard.
	Shards []int
	// Limit is the maximum number of groups to return. 0 means DefaultPage, values above MaxPage
	// mean MaxPage.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *GroupsRequest) Validate() error { return validateShards(r.Shards) }

// Size returns Limit with its default and maximum applied.
func (r *GroupsRequest) Size() int { return PageRequest{Limit: r.Limit}.Size() }

// GroupsReply is the result of Groups.
type GroupsReply struct {
	// Now is the store's clock. It has no meaning if no shard was requested or reached.
	Now core.Instant
	// Groups are the groups with the most dead letters, at most Limit. Each is the sum over the
	// requested shards, with the earliest First and the latest Last. They are in order of Count,
	// largest first, and then of Name.
	Groups []core.Group
	// Total is the number of groups, and Dead is the number of their dead letters. Both include the
	// groups that Limit leaves out.
	Total int
	Dead  int64
	// Unreached are the shards that can't be reached now, in order of index. Their dead letters are
	// missing in the reply.
	Unreached []core.Shard
}

// validateGroup refuses a group that a dead letter can't have; "" means any group.
func validateGroup(group string) error {
	if group != "" && core.GroupName(group) != group {
		return fmt.Errorf("%w: there is no group %q; use a name that Groups returned", ErrInvalidRequest, group)
	}
	return nil
}
