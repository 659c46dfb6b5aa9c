package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// slotServer is a master, called as by a client that ASK has redirected to it.
type slotServer struct {
	id     string
	client *goredis.Client
}

// do sends a command after ASKING, which has an effect only on the server to which the slot moves.
func (s *slotServer) do(ctx context.Context, args ...any) (any, error) {
	cmd := goredis.NewCmd(ctx, args...)
	_, _ = s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		p.Do(ctx, "asking")
		return p.Process(ctx, cmd)
	})
	if err := cmd.Err(); err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	return cmd.Val(), nil
}

// put deletes all keys, or stores some.
func (s *slotServer) put(t *testing.T, dumps map[string]string) {
	t.Helper()
	if dumps == nil {
		must(t, s.client.FlushAll(t.Context()).Err())
	}
	for key, dump := range dumps {
		_, err := s.do(t.Context(), "restore", key, 0, dump)
		must(t, err)
	}
}

func (s *slotServer) keys(t *testing.T, slot int) []string {
	t.Helper()
	keys, err := s.client.ClusterGetKeysInSlot(t.Context(), slot, 1000).Result()
	must(t, err)
	return keys
}

func (s *slotServer) dump(t *testing.T, slot int) map[string]string {
	t.Helper()
	dumps := map[string]string{}
	for _, key := range s.keys(t, slot) {
		value, err := s.do(t.Context(), "dump", key)
		must(t, err)
		dumps[key] = value.(string)
	}
	return dumps
}

// read is the server's part of a slot.
func (s *slotServer) read(t *testing.T, slot int) contents {
	t.Helper()
	return s.readKeys(t, s.keys(t, slot))
}

func (s *slotServer) readKeys(t *testing.T, keys []string) contents {
	t.Helper()
	all := contents{}
	for _, key := range keys {
		kind, err := s.do(t.Context(), "type", key)
		must(t, err)
		command := map[string][]any{
			"string": {"get", key}, "hash": {"hgetall", key}, "zset": {"zrange", key, 0, -1, "withscores"},
		}[kind.(string)]
		value, err := s.do(t.Context(), command...)
		must(t, err)
		all[key] = leaves(value)
	}
	return all
}

// leaves returns the texts and numbers of a reply in order, since Redis returns some of them in any
// order.
func leaves(reply any) []string {
	var all []string
	switch r := reply.(type) {
	case []any:
		for _, v := range r {
			all = append(all, leaves(v)...)
		}
	case map[any]any:
		for k, v := range r {
			all = append(all, fmt.Sprintf("%q: %v", k, leaves(v)))
		}
	default:
		all = []string{fmt.Sprintf("%q", r)}
	}
	slices.Sort(all)
	return all
}

// scriptRecorder keeps the last call of a script that was sent in full, by whichever goroutine.
type scriptRecorder struct {
	text string
	mu   sync.Mutex
	args []any
}

// last returns the call, nil if there was none.
func (r *scriptRecorder) last() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.args
}

// forget drops the call that was recorded.
func (r *scriptRecorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.args = nil
}

// recordScript is a recorder of the script of this name, whose file is in a folder of
// adapters/redis/lua other than lib.
func recordScript(t *testing.T, name string) *scriptRecorder {
	t.Helper()
	files, err := filepath.Glob("../../../adapters/redis/lua/*/" + name + ".lua")
	must(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(filepath.Dir(file)) == "lib" })
	if len(files) != 1 {
		t.Fatalf("found the script %s in %v, want one file", name, files)
	}
	file, err := os.ReadFile(files[0])
	must(t, err)
	_, text, _ := strings.Cut(string(file), "\n")
	return &scriptRecorder{text: text}
}

func (r *scriptRecorder) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (r *scriptRecorder) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		r.record(cmd)
		return err
	}
}

func (r *scriptRecorder) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			r.record(cmd)
		}
		return err
	}
}

func (r *scriptRecorder) record(cmd goredis.Cmder) {
	if cmd.Name() != "eval" {
		return
	}
	if sent, ok := cmd.Args()[1].(string); ok && strings.Contains(sent, r.text) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.args = cmd.Args()
	}
}
