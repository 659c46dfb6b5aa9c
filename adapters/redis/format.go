package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// The format of what is stored: storedFormat is what this program writes, and oldestReader the
// oldest that a program may know which uses it, so that old and new ones can run side by
// side while one replaces the other. Declare stores both.
//
// What scripts store is held to that of an earlier version, byte for byte, by TestRedisVersionsTellOneStory of
// internal/integration, and whoever changes it meets that test first: docs/architecture.md says what then.
const (
	storedFormat = 1
	oldestReader = 1
)

// formatField is where the hash of queues says which format is stored. No queue has a slash
// in its name.
const formatField = "/format"

// checkFormat refuses a format that only newer programs may use, before anything is written.
func (s *Store) checkFormat(ctx context.Context) error {
	text, err := ask(ctx, s, goredis.NewStringCmd(ctx, "hget", s.queuesKey(), formatField)).Result()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	if err != nil {
		return translate(ctx, err)
	}
	return fitsFormat(s.prefix, text)
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
