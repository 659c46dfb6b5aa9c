package redis

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Forget implements ports.Operator. It removes the shards and then the queue's
// record, unless the queue was declared meanwhile, whose shards are made again then.
func (s *Store) Forget(ctx context.Context, name string) error {
	q, err := s.queue(ctx, name)
	if err != nil {
		return err
	}
	if err := s.vacate(ctx, q, false); err != nil {
		return err
	}
	mark := rand.Text()
	if _, err := s.forget(ctx, name, mark, false); err != nil {
		return err
	}
	if err := s.vacate(ctx, q, true); err != nil {
		return err
	}
	declared, err := s.forget(ctx, name, mark, true)
	if err != nil || declared == "" {
		return err
	}
	if q, err = parseRecord(name, declared); err != nil {
		return err
	}
	return s.openShards(ctx, q)
}

// forget marks the queue's record, or removes it and gives it back if it has lost
// the mark.
func (s *Store) forget(ctx context.Context, name, mark string, remove bool) (declared string, err error) {
	value, err := s.run(ctx, call{script: forgetScript, keys: []any{s.queuesKey()}, args: []any{name, mark, flag(remove)}})
	declared, _ = value.(string)
	return declared, err
}

// vacate looks whether all shards are empty and nobody's, and may remove those
// that are. Jobs count before leases.
func (s *Store) vacate(ctx context.Context, q record, remove bool) error {
	var held error
	err := s.eachShard(ctx, q, func(shard core.Shard) call {
		return call{script: forgetShardScript, keys: s.firstKeys(shard, allKeys), args: []any{s.now(), flag(remove)}}
	}, func(shard core.Shard, value any) error {
		r := replyOf(value)
		switch r.text() {
		case "ok", "unknown": // an earlier Forget has removed it
			return nil
		case "jobs":
			return storekit.NotEmpty(shard)
		case "held":
			if held == nil {
				held = &ports.HeldError{Shard: shard, Owner: r.text(), Remaining: micros(r.int())}
			}
			return r.err()
		}
		return errReply
	})
	if err != nil {
		return err
	}
	return held
}

// Recount implements ports.Operator. Stats counts by the lists that jobs and dead
// letters are in, which a call corrects as a whole; so there is something to correct
// only after a fault of Redis or of a person.
func (s *Store) Recount(ctx context.Context, shard core.Shard) (ports.RecountReply, error) {
	value, err := s.run(ctx, call{script: recountScript, keys: s.firstKeys(shard, allKeys), args: []any{s.now()}})
	if err != nil {
		return ports.RecountReply{}, err
	}
	r := replyOf(value)
	switch r.text() {
	case "ok":
		before, after := r.list(), r.list()
		reply := ports.RecountReply{Before: before.counts(), After: after.counts()}
		return reply, errors.Join(r.err(), before.err(), after.err())
	case "unknown":
		return ports.RecountReply{}, s.absent(ctx, shard)
	}
	return ports.RecountReply{}, errReply
}

// counts are as lua/lib/counts.lua gives them.
func (r *reply) counts() ports.Counts {
	queued, retries := r.int(), r.int()
	return ports.Counts{
		Fresh: queued - retries, Retrying: retries, Claimed: r.int(), Dead: r.int(),
		Processed: r.int(), Failed: r.int(), Oldest: r.head(),
	}
}
