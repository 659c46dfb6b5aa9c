package ports

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// GroupsRequest asks how many dead letters of a queue are of which group.
type GroupsRequest struct {
	Queue string
	// Shards are the indexes of the shards to count, in any order; nil is all of them, an empty list none.
	Shards []int
	// Limit is how many groups to return at most: 0 is DefaultPage, above MaxPage is MaxPage.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *GroupsRequest) Validate() error { return validateShards(r.Shards) }

// Size returns Limit with its default and bound applied.
func (r *GroupsRequest) Size() int { return PageRequest{Limit: r.Limit}.Size() }

// GroupsReply is what Groups returns.
type GroupsReply struct {
	// Now is the store's clock. It says nothing if no shard was asked for or reached.
	Now core.Instant
	// Groups are those with the most dead letters: the sums over the shards, with the earliest First and the latest
	// Last, in order of Count, the largest first, and then of Name.
	Groups []core.Group
	// Total is how many groups there are, and Dead how many dead letters these have, those included that Limit leaves
	// out.
	Total int
	Dead  int64
	// Unreached are the shards that can't be reached now, in order of index, whose dead letters are missing.
	Unreached []core.Shard
}

// validateGroup refuses a group that no dead letter can be of; "" is any.
func validateGroup(group string) error {
	if group != "" && core.GroupName(group) != group {
		return fmt.Errorf("%w: no group is called %q; take a name that Groups returned", ErrInvalidRequest, group)
	}
	return nil
}
