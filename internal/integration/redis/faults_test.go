package redis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// cutShards is a hook of a client whose commands on the keys of some shards fail, as if the
// server that has them could not be reached.
type cutShards struct {
	tags  sync.Map // the beginning of the names of the shards' keys
	reads bool     // GETs get through
}

var errCutOff = errors.New("the shard is cut off")

// replyAborted is the reply of a server to a transaction, some of whose keys it can't read.
type replyAborted struct{}

func (replyAborted) Error() string { return "EXECABORT a shard of the transaction is cut off" }

// RedisError implements goredis.Error.
func (replyAborted) RedisError() {}

// cuts reports whether a command has a key of a shard that is cut off.
func (c *cutShards) cuts(cmd goredis.Cmder) bool {
	cut := false
	if c.reads && cmd.Name() == "get" {
		return false
	}
	for _, arg := range cmd.Args()[1:] {
		text, _ := arg.(string)
		c.tags.Range(func(tag, _ any) bool {
			cut = cut || strings.HasPrefix(text, tag.(string))
			return !cut
		})
	}
	return cut
}

func (c *cutShards) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (c *cutShards) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if c.cuts(cmd) {
			cmd.SetErr(errCutOff)
			return errCutOff
		}
		return next(ctx, cmd)
	}
}

func (c *cutShards) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if cmds[0].Name() == "multi" && slices.ContainsFunc(cmds, c.cuts) {
			for _, cmd := range cmds {
				cmd.SetErr(replyAborted{})
			}
			return replyAborted{}
		}
		var rest []goredis.Cmder
		for _, cmd := range cmds {
			if c.cuts(cmd) {
				cmd.SetErr(errCutOff)
			} else {
				rest = append(rest, cmd)
			}
		}
		if len(rest) == 0 {
			return errCutOff
		}
		return next(ctx, rest)
	}
}

// severable is a store from which the suite cuts shards off. Its looks are patient: on a busy
// machine a master of a Cluster may take longer than a look waits for it, which the port allows and
// the suite does not expect of a shard that it has not cut off.
type severable struct {
	*redis.Store
	cuts   *cutShards
	prefix string
}

// Sever implements conformance.Severer.
func (s severable) Sever(shard core.Shard) (mend func()) {
	tag := s.tag(shard)
	s.cuts.tags.Store(tag, true)
	return func() { s.cuts.tags.Delete(tag) }
}

func (s severable) tag(shard core.Shard) string { return s.prefix + "{" + shard.String() + "}" }

// slow reports whether a shard that was not reached is not cut off.
func (s severable) slow(unreached []core.Shard) bool {
	return slices.ContainsFunc(unreached, func(shard core.Shard) bool {
		_, cut := s.cuts.tags.Load(s.tag(shard))
		return !cut
	})
}

// patient repeats a look until it has reached all shards that are not cut off.
func patient[R, T any](
	ctx context.Context,
	s severable,
	r R,
	look func(*redis.Store, context.Context, R) (T, error),
	unreached func(T) []core.Shard,
) (T, error) {
	for end := time.Now().Add(testservers.Patience); ; {
		reply, err := look(s.Store, ctx, r)
		slow := err != nil && strings.Contains(err.Error(), "long after another call was answered") ||
			s.slow(unreached(reply))
		if !slow || ctx.Err() != nil || time.Now().After(end) {
			return reply, err
		}
	}
}

func (s severable) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	return patient(ctx, s, r, (*redis.Store).Stats, func(all []ports.QueueStats) (unreached []core.Shard) {
		for _, q := range all {
			unreached = append(unreached, q.Unreached...)
		}
		return unreached
	})
}

func (s severable) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	return patient(ctx, s, r, (*redis.Store).History, func(reply ports.HistoryReply) []core.Shard {
		return reply.Unreached
	})
}

func (s severable) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return patient(ctx, s, r, (*redis.Store).Jobs, func(page ports.JobsPage) []core.Shard { return page.Unreached })
}

func (s severable) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	return patient(ctx, s, r, (*redis.Store).Claimed, func(page ports.ClaimedPage) []core.Shard {
		return page.Unreached
	})
}

func (s severable) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	return patient(ctx, s, r, (*redis.Store).Morgue, func(page ports.MorguePage) []core.Shard { return page.Unreached })
}

func (s severable) Past(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	return patient(ctx, s, r, (*redis.Store).Past, func(page ports.PastPage) []core.Shard { return page.Unreached })
}

func (s severable) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	return patient(ctx, s, r, (*redis.Store).Groups, func(reply ports.GroupsReply) []core.Shard {
		return reply.Unreached
	})
}

func (s severable) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	return patient(ctx, s, r, (*redis.Store).QuarantinedShards, func(reply ports.QuarantinedShards) []core.Shard {
		return reply.Unreached
	})
}

func (s severable) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	return patient(ctx, s, shards, (*redis.Store).Heads, func(reply ports.HeadsReply) []core.Shard {
		return reply.Unreached
	})
}

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
	{0, "\x03\xff\xff\xff\xff a list without an end"},
	{0, "\x10\x00\x00\x00\x00\x00\x00\x01\xff\xff tags without an end"},
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
