package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// The format of what is stored: storedFormat is what this program writes, and oldestReader the
// oldest that a program may know which uses it, so that old and new ones can run side by
// side while one replaces the other. Declare stores both.
//
// What scripts store is held to that of an earlier version, byte for byte, by TestRedisVersionsTellOneStory of
// internal/integration, and whoever changes it meets that test first: docs/architecture.md says what then.
//
// A Cluster may have lost the server that has the format. Then the record of a shard stands in for
// it, of any that can be reached: if parseQueueRecord reads it, this program may use what is
// stored. So a format that programs of an older one may not use has to change how the records of
// shards begin, before anything else.
const (
	storedFormat = 1
	oldestReader = 1
)

// formatField is where the hash of queues says which format is stored. No queue has a slash
// in its name.
const formatField = "/format"

// errFormatUnread is the error of a call that would write before anything told which format is
// stored.
var errFormatUnread = errors.New("redis: the Cluster's server that has the list of queues can't be reached, so which format is stored is not known, and nothing was written; bring it back; without it only queues that were declared before can be worked")

// checkFormat refuses a format that only newer programs may use, before anything is written. It is
// errFormatUnread if a Cluster's server that has it can't be reached.
func (s *Store) checkFormat(ctx context.Context) error {
	type found struct {
		text string
		err  error
	}
	asking, cancel := ctx, context.CancelFunc(func() {})
	if s.onCluster() {
		asking, cancel = context.WithTimeout(ctx, formatPatience)
	}
	defer cancel()
	f, err := await(asking, s.workers, func() found {
		text, err := ask(asking, s, goredis.NewStringCmd(asking, "hget", s.queuesKey(), formatField)).Result()
		if errors.Is(err, goredis.Nil) {
			return found{}
		}
		s.noteMoves(ctx, err)
		return found{text, translate(asking, err)}
	})
	err = cmp.Or(err, f.err)
	switch {
	case err != nil && s.onCluster() && !storekit.HasKnownOutcome(err) && ctx.Err() == nil:
		return errFormatUnread
	case err != nil || f.text == "":
		return err
	}
	return fitsFormat(s.prefix, f.text)
}

// fitsFormat returns an error unless this program may use the stored format.
func fitsFormat(prefix, text string) error {
	var format, oldest int
	if _, err := fmt.Sscan(text, &format, &oldest); err != nil {
		return errStored
	}
	if oldest > storedFormat {
		return fmt.Errorf("%w: what Redis keeps below %q has format %d, which needs a program that supports at least %d, and this one supports %d; update the program",
			ports.ErrUnusable, prefix, format, oldest, storedFormat)
	}
	return nil
}
