package redis_test

import (
	"context"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// damageable is a store on Redis whose records the suite damages.
type damageable struct {
	severable
	client goredis.UniversalClient
}

// forms are the forms of a damaged record: how many of its first bytes are kept, and what follows.
var forms = []struct {
	kept int
	rest string
}{
	{0, ""},
	{5, ""},
	{0, strings.Repeat("\xff", 64)},
	{0, "\x02 many payloads, and more"},
	{0, "\x20\xff\xff\xff\xff a list without an end"},
	{1, "\x00"},
	{0, "\x01\x7f\xf8\x00\x00\x00\x00\x00\x00 a score that is no number"},
}

// Damage implements conformance.Damager.
func (s damageable) Damage(ctx context.Context, shard core.Shard, id string, place ports.Place) error {
	key := s.prefix + "{" + shard.String() + "}:" + map[ports.Place]string{
		ports.PlaceQueued: "j", ports.PlaceClaimed: "c", ports.PlaceDead: "x",
	}[place]
	record, err := s.client.HGet(ctx, key, id).Result()
	if err != nil {
		return err
	}
	form := forms[int(id[len(id)-1])%len(forms)]
	return s.client.HSet(ctx, key, id, record[:min(form.kept, len(record))]+form.rest).Err()
}
