package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// The format of the stored data. storedFormat is what this program writes. oldestReader is the
// oldest format that a program must support to use the stored data, so that old and new programs
// can run side by side during an upgrade. Declare stores both.
//
// To change the format, raise storedFormat. If older programs can't use the changed data, raise
// oldestReader too. CHANGELOG.md states whether both versions may run side by side: see
// docs/design/stored-formats.md. TestTwoVersionsWorkSideBySide of
// internal/integration runs whole programs of this version and of a next one on one store.
//
// A Cluster may have lost the server that has the format. Then the record of any reachable shard
// stands in for it: if parseQueueRecord reads that record, this program may use the stored data.
// So a format that programs of an older one may not use has to change the beginning of the shards'
// records before anything else.
const (
	storedFormat = 1
	oldestReader = 1
)

// formatField is the field of the hash of queues that has the stored format. No queue has a slash
// in its name.
const formatField = "/format"

// errFormatUnread is the error of a call that would write before the stored format is known.
var errFormatUnread = errors.New("redis: the Cluster's server with the list of queues can't be reached, " +
	"so the stored format is unknown, and nothing was written; " +
	"restore that server; until then servers run only queues that were declared before")

// checkFormat refuses a format that only newer programs may use, before anything is written. It
// returns errFormatUnread if a Cluster's server that has the format can't be reached.
func (s *Store) checkFormat(ctx context.Context) error {
	asking, cancel := ctx, context.CancelFunc(func() {})
	if s.link.OnCluster() {
		asking, cancel = context.WithTimeout(ctx, formatPatience)
	}
	defer cancel()

	text, err := exchange.Ask(asking, s.link, goredis.NewStringCmd(asking, "hget", s.queuesKey(), formatField))
	switch {
	case err != nil && s.link.OnCluster() && !storekit.HasKnownOutcome(err) && ctx.Err() == nil:
		return errFormatUnread
	case err != nil || text == "":
		return err
	}
	return fitsFormat(s.prefix, text)
}

// fitsFormat returns an error unless this program may use the stored format.
func fitsFormat(prefix, text string) error {
	var format, oldest int
	if _, err := fmt.Sscan(text, &format, &oldest); err != nil {
		return record.ErrStored
	}
	if oldest > storedFormat {
		return fmt.Errorf("%w: the data in Redis below %q has format %d, "+
			"which needs a program that supports at least %d, and this one supports %d; update the program",
			ports.ErrUnusable, prefix, format, oldest, storedFormat)
	}
	return nil
}
