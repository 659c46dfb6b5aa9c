package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// settingsField returns the field of the hash of queues that has the settings of a queue, as
// configure.lua describes it.
func settingsField(queue string) string { return queue + "/settings" }

// isQueueField reports whether a field of the hash of queues is the name of a queue. Other fields
// have a slash, which no name has.
func isQueueField(field string) bool { return !strings.Contains(field, "/") }

// Configure implements [ports.Operator].
func (s *Store) Configure(ctx context.Context, r ports.ConfigureRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if !isQueueField(r.Queue) {
		return storekit.UnknownQueue(r.Queue)
	}
	text, err := storekit.EncodeSettings(r.Settings)
	if err != nil {
		return err
	}

	value, err := s.run(ctx, exchange.Call{
		Script: configureScript,
		Keys:   []any{s.queuesKey()},
		Args:   []any{r.Queue, r.Settings.Version, text},
	})
	if err != nil {
		return err
	}

	switch reply := record.ReplyOf(value); reply.Text() {
	case "ok":
		return nil
	case "unknown":
		return storekit.UnknownQueue(r.Queue)
	case "conflict":
		present := s.settingsOf(r.Queue, reply.Text())
		if err := reply.Err(); err != nil {
			return err
		}
		return &ports.SettingsConflictError{Queue: r.Queue, Settings: present}
	}
	return record.ErrReply
}

// settingsOf reads the stored settings of a queue. It logs settings that can't be read, unless it has
// logged this text of them before.
func (s *Store) settingsOf(queue, text string) core.Settings {
	settings, err := parseSettings(text)
	if err != nil && s.seen.isNewDamage(settingsField(queue), text) {
		storekit.LogUnread(s.logger, queue, text, err)
	}
	return settings
}

// parseSettings reads the text of configure.lua. An empty text is that of no settings. If the text
// can't be read, parseSettings returns broken settings, and the reason.
func parseSettings(text string) (core.Settings, error) {
	if text == "" {
		return core.Settings{}, nil
	}

	number, json, ok := strings.Cut(text, " ")
	version, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || version < 1 || strconv.FormatInt(version, 10) != number {
		return core.Settings{Broken: true}, fmt.Errorf("it begins with %q, which is no version",
			core.CutText(core.Text(number), storekit.SettingsShown))
	}
	return storekit.DecodeSettings(version, json)
}
