package integration_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
)

// cutShards is a hook of a client whose commands on the keys of some shards fail, as if the
// server that has them could not be reached.
type cutShards struct {
	tags  sync.Map // what the names of the shards' keys begin with
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

// severable is a store from which the suite cuts shards off.
type severable struct {
	*redis.Store
	cuts   *cutShards
	prefix string
}

// Sever implements conformance.Severer.
func (s severable) Sever(shard core.Shard) (mend func()) {
	tag := s.prefix + "{" + shard.String() + "}"
	s.cuts.tags.Store(tag, true)
	return func() { s.cuts.tags.Delete(tag) }
}
