package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Groups is how the dead letters of a queue are spread over groups.
type Groups struct {
	// Groups are those with the most dead letters, the largest first.
	Groups []Group
	// Total is how many groups there are, and Dead how many dead letters they have, also those that a limit has
	// left out.
	Total int
	Dead  int64
	// Now is the store's clock.
	Now time.Time
}

// Group counts the dead letters whose newest payload was buried for errors that are alike, as
// ServerOptions.ErrorGroup says.
type Group struct {
	// Name is the group's, of 64 bytes at most: that of an error, core.BuriedByHand of what an operator has buried,
	// core.RecoveredGroup of jobs that have lost their process too often, and core.OtherGroup of what came to a shard
	// with 1,000 other groups.
	Name string
	// Count is how many dead letters there are.
	Count int64
	// First is the earliest burial since the group was empty, and Last the latest.
	First, Last time.Time
}

// Groups counts the dead letters of a queue by group, and returns at most limit groups: 0 is 100, and the most
// are 1,000. List a group with ListOptions.Group, and act on it with BulkOptions.Group. Where shards can't be
// reached it returns what others have and a *[PartialError]; a negative limit is [ErrInvalidOptions].
func (i *Inspector) Groups(ctx context.Context, queue string, limit int) (Groups, error) {
	if limit < 0 {
		return Groups{}, fmt.Errorf("%w: a limit of %d groups; 0 is 100", ErrInvalidOptions, limit)
	}
	reply, err := ask(i, func(s Store) (ports.GroupsReply, error) {
		return s.Groups(ctx, ports.GroupsRequest{Queue: queue, Limit: limit})
	})
	if err != nil {
		return Groups{}, err
	}
	return Groups{Groups: convert(reply.Groups, groupOf), Total: reply.Total, Dead: reply.Dead, Now: reply.Now.Time()}, partial(reply.Unreached)
}

func groupOf(g *core.Group) Group {
	return Group{Name: g.Name, Count: g.Count, First: g.First.Time(), Last: g.Last.Time()}
}

// checkGroup returns ErrInvalidOptions for a name that no group has; "" is any.
func checkGroup(name string) error {
	if name != "" && core.GroupName(name) != name {
		return fmt.Errorf("%w: no group is called %q; take a name that Groups has returned", ErrInvalidOptions, name)
	}
	return nil
}
