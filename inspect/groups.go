package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Groups is the number of dead letters of a queue in each group.
type Groups struct {
	// Groups are the groups with the most dead letters, in order of Count, largest first.
	Groups []Group
	// Total is the number of groups, and Dead is the number of their dead letters. Both include the
	// groups that the limit leaves out.
	Total int
	Dead  int64
	// Now is the store's clock.
	Now time.Time
}

// Group counts the dead letters whose newest payload was buried for the same kind of error, as
// ServerOptions.ErrorGroup defines it.
type Group struct {
	// Name is the name of the group, at most 64 bytes. It is the group of an error,
	// core.BuriedByHand for jobs that an operator buried, core.RecoveredGroup for jobs that lost
	// their process too often, or core.OtherGroup for dead letters without a name of a group, or of
	// a shard that already had 1,000 other groups.
	Name  string    `json:"name" class:"error" doc:"the error that its dead letters share, without numbers"`
	Count int64     `json:"count" class:"public" doc:"the number of its dead letters"`
	First time.Time `json:"first" class:"public" doc:"when the first dead letter was buried since the group was empty"`
	Last  time.Time `json:"last" class:"public" doc:"when the last dead letter was buried"`
}

// Groups counts the dead letters of a queue by group. It returns at most limit groups: 0 means 100,
// and more than 1,000 means 1,000. To list a group, use ListOptions.Group; to change it, use
// BulkOptions.Group. If shards can't be reached, it returns the counts of the others and a
// *[PartialError]. For a negative limit it returns [ErrInvalidOptions].
func (i *Inspector) Groups(ctx context.Context, queue string, limit int) (Groups, error) {
	if limit < 0 {
		return Groups{}, fmt.Errorf("%w: a limit of %d groups; give 0 or more, 0 means 100", ErrInvalidOptions, limit)
	}

	reply, err := ask(i, func(s Store) (ports.GroupsReply, error) {
		return s.Groups(ctx, ports.GroupsRequest{Queue: queue, Limit: limit})
	})
	if err != nil {
		return Groups{}, err
	}
	return Groups{
		Groups: convert(reply.Groups, groupOf),
		Total:  reply.Total,
		Dead:   reply.Dead,
		Now:    reply.Now.Time(),
	}, partial(reply.Unreached)
}

func groupOf(g *core.Group) Group {
	return Group{Name: g.Name, Count: g.Count, First: g.First.Time(), Last: g.Last.Time()}
}

// checkGroup returns ErrInvalidOptions for a name that no group has; "" means any group.
func checkGroup(name string) error {
	if name != "" && core.GroupName(name) != name {
		return fmt.Errorf("%w: there is no group %q; use a name that Groups returned", ErrInvalidOptions, name)
	}
	return nil
}
