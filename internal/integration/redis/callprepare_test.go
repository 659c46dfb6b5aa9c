package redis_test

import (
	"strings"
)

// prepare makes what a call needs in addition to the worker's shard.
func (w *worker) prepare(call scriptCall) {
	w.t.Helper()
	if strings.HasSuffix(call.name, "a known node") {
		w.must(w.announce(5))
		w.must(w.audited("known"))
	}
	switch call.script {
	case "alter_shard":
		if strings.HasPrefix(call.name, "resume") {
			w.must(pausing(w))
		}
	case "permit":
		w.must(w.permit("held", 4))
		w.must(w.permit("wanting", 2))
	case "recount":
		if strings.HasSuffix(call.name, "what is wrong") {
			for _, fault := range []string{"zrem r plain", "zrem rt failed", "zadd i 0 never", "zrem xt dead", "zadd g:bad 0 gone", "hdel xg bad", "hset l alone 1"} {
				w.lose(strings.Fields(fault))
			}
		}
	case "discard", "set_aside_list":
		for _, id := range []string{"b", "whole"} {
			w.must(w.client.HSet(w.t.Context(), "skein:{"+w.shard.String()+"}:j", id, "?").Err())
			w.must(w.bury(id))
		}
	case "set_aside":
		if strings.HasPrefix(call.name, "beside others") {
			w.must(w.client.HSet(w.t.Context(), "skein:{"+w.shard.String()+"}:q", "1600000000000000qz", "?").Err())
		}
		for suffix, command := range losses {
			if strings.HasSuffix(call.name, suffix) {
				w.lose(strings.Fields(command))
				return
			}
		}
		base, damaged := "skein:{"+w.shard.String()+"}:", map[string]string{"j": "b", "c": "a", "x": "dead"}
		if strings.HasSuffix(call.name, "a cancel") {
			damaged = map[string]string{"k": "b"}
		}
		for key, id := range damaged {
			w.must(w.client.HSet(w.t.Context(), base+key, id, "?").Err())
		}
		w.must(w.store.Release(w.t.Context(), w.lease))
	case "forget", "forget_shard":
		w.must(w.declare("other"))
	}
}

// losses are commands that lose or damage a record, by the end of the name of the call that then
// meets it.
var losses = map[string]string{
	"lost its record": "hdel x gone", "record of many payloads": "hset j whole ?", "lost its payloads": "del p:whole", "job anew": "zrem r plain", "letter anew": "zrem xt dead",
}

// lose runs a command whose second word is the end of the name of a key of the shard.
func (w *worker) lose(command []string) {
	w.t.Helper()
	args := []any{command[0], "skein:{" + w.shard.String() + "}:" + command[1]}
	for _, arg := range command[2:] {
		args = append(args, arg)
	}
	w.must(w.client.Do(w.t.Context(), args...).Err())
}
