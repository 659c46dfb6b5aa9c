package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/canonical"
	"github.com/skeinq/skein/ports"
)

// bytesFlags are three flags for bytes: as text, from a file, or in Base64.
type bytesFlags struct {
	name               string
	text, file, base64 string
	set                *pflag.FlagSet
}

func (b *bytesFlags) add(f *pflag.FlagSet, name, what string) {
	b.name, b.set = name, f
	f.StringVar(&b.text, name, "", what+", as `TEXT`")
	f.StringVar(&b.file, name+"-file", "", what+": the content of this `FILE`, without the line end behind JSON; - is standard input")
	f.StringVar(&b.base64, name+"-base64", "", what+", in standard `BASE64`")
}

// bytes returns the given bytes. there is false if no flag was given.
func (b *bytesFlags) bytes(stdin io.Reader) (data []byte, there bool, err error) {
	given := 0
	for _, suffix := range []string{"", "-file", "-base64"} {
		if b.set.Changed(b.name + suffix) {
			given++
		}
	}

	switch {
	case given > 1:
		return nil, false, fmt.Errorf("%w: give one of --%s, --%[2]s-file and --%[2]s-base64", errUsage, b.name)
	case b.set.Changed(b.name + "-base64"):
		if data, err = base64.StdEncoding.DecodeString(b.base64); err != nil {
			return nil, false, fmt.Errorf("%w: --%s-base64: %w", errUsage, b.name, err)
		}
	case b.set.Changed(b.name + "-file"):
		if data, err = read(b.file, stdin); err != nil {
			return nil, false, fmt.Errorf("%w: --%s-file: %w", errUsage, b.name, err)
		}
		data = withoutLineEnd(data)
	default:
		data = []byte(b.text)
	}
	return data, given == 1, nil
}

// withoutLineEnd returns JSON without a last line end. Editors and echo add one, which would make it
// another payload than the one that programs push. Other bytes stay as they are.
func withoutLineEnd(data []byte) []byte {
	if !json.Valid(data) {
		return data
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
}

func read(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// layoutFlags declare a queue that does not exist yet.
type layoutFlags struct {
	shards   int
	indexIDs bool
}

func (l *layoutFlags) add(f *pflag.FlagSet) {
	f.IntVar(&l.shards, "shards", 0,
		"declare the queue with this permanent number of shards, if it does not exist; "+
			"an existing queue must have this number")
	f.BoolVar(&l.indexIDs, "index-ids", false, "with --shards: declare it with an index of ids")
}

// declared returns the store's record of a queue. It declares the queue if it does not exist and
// --shards is given, or if the user of a terminal answers with their number.
func (a *app) declared(ctx context.Context, l *layoutFlags, name string) (ports.Queue, error) {
	store := a.backend.Store
	queues, err := store.Queues(ctx)
	if err != nil {
		return ports.Queue{}, err
	}

	for _, q := range queues {
		if q.Name != name {
			continue
		}

		switch {
		case l.shards != 0 && l.shards != q.Shards:
			return q, fmt.Errorf("%w: --shards %d, but queue %q has %d; the number of a queue's shards can't change: "+
				"leave --shards out",
				errUsage, l.shards, name, q.Shards)
		case l.indexIDs && !q.IndexIDs:
			return q, fmt.Errorf("%w: --index-ids, but queue %q has no index of ids; leave --index-ids out",
				errUsage, name)
		}
		return q, nil
	}

	shards := l.shards
	if shards == 0 {
		if !terminal(a.stdin) || !terminal(a.stderr) {
			return ports.Queue{}, fmt.Errorf("%w: %q; declare it with --shards, as programs do when they push",
				inspect.ErrUnknownQueue, name)
		}
		if shards, err = a.askShards(ctx, name); err != nil {
			return ports.Queue{}, err
		}
	}

	reply, err := store.Declare(ctx, ports.DeclareRequest{Queue: name, Shards: shards, IndexIDs: l.indexIDs})
	return ports.Queue{Name: name, Shards: shards, Generation: reply.Generation, IndexIDs: l.indexIDs}, err
}

// askShards asks for the number of shards of a new queue.
func (a *app) askShards(ctx context.Context, name string) (int, error) {
	_, _ = fmt.Fprintf(a.stderr, "There is no queue %s yet. Its number of shards is permanent, and must be the Shards "+
		"of the programs that push to it, %d by default.\nType the number, 1 to %d, to declare the queue: ",
		quoted(name), skein.DefaultShards, core.MaxShards)
	answer, err := readLine(ctx, a.stdin)
	if err != nil {
		return 0, err
	}

	shards, err := strconv.Atoi(answer)
	if err != nil || core.ValidateQueue(name, shards) != nil {
		return 0, fmt.Errorf("%w: %s is no number of shards from 1 to %d, or the name is none of a queue; "+
			"push again, and type the number or give --shards", errNothing, quoted(answer), core.MaxShards)
	}
	return shards, nil
}

func (a *app) push() *cobra.Command {
	var payload bytesFlags
	var layout layoutFlags
	var score float64
	var at string
	var in, urgent, once time.Duration
	var tags []string
	var canonicalJSON bool
	c := a.command(
		"push QUEUE ID",
		"Push a payload, in exactly the bytes that the queue's codec would write",
		`skein job push orders 42 --payload '{"paid":true}'`,
		cobra.ExactArgs(2),
		nil,
	)

	f := c.Flags()
	payload.add(f, "payload", "the payload")
	f.BoolVar(&canonicalJSON, "json", false,
		"the payload is JSON: push its canonical form, as JSONCodec writes with Canonical, and refuse anything else")
	layout.add(f)
	f.Float64Var(&score, "score", 0,
		"the score, which orders the payloads of the id, lowest first; without it the present time in seconds")
	f.StringVar(&at, "at", "", "when it may run, a `TIME` such as 2026-01-02T15:04:05Z; now without it")
	f.DurationVar(&in, "in", 0, "the job may run after this time from now")
	f.DurationVar(&urgent, "urgent", 0,
		"overtake the jobs that became due up to this time earlier, at most 24h; not with --at or --in")
	f.DurationVar(&once, "once-in", 0,
		"drop it if an equal payload was pushed for the id with --once-in or OnceIn, "+
			"whose time has not passed; at least 1s")
	f.StringArrayVar(&tags, "tag", nil, "add this `TAG` to the job; may be repeated, up to 8 tags")

	c.RunE = func(cmd *cobra.Command, args []string) error {
		entry := core.Entry{ID: args[1], Payload: core.Payload{Score: score}, When: core.In(in)}
		if !f.Changed("score") {
			entry.Score = float64(time.Now().UnixMicro()) / 1e6
		}

		if at != "" {
			t, err := time.Parse(time.RFC3339Nano, at)
			if err != nil || in != 0 {
				return usage(cmd,
					fmt.Errorf("--at %s; give a time such as 2026-01-02T15:04:05Z, and not --in with it", at))
			}
			entry.When = core.At(core.InstantOf(t))
		}

		if f.Changed("urgent") {
			if at != "" || in != 0 {
				return usage(cmd, fmt.Errorf("--urgent together with --at or --in; give one of them"))
			}
			entry.When = core.Urgent(urgent)
		}

		if f.Changed("once-in") && once == 0 {
			return usage(cmd, fmt.Errorf("--once-in 0; give at least %v, or leave it out", core.MinOnce))
		}
		entry.OnceIn = once

		data, there, err := payload.bytes(a.stdin)
		if err == nil {
			entry.Tags, err = core.NewTags(tags...)
		}
		if err != nil {
			return err
		}

		if entry.Data = data; !there {
			return usage(cmd, fmt.Errorf("give the payload, by --payload, --payload-file or --payload-base64"))
		}
		if canonicalJSON {
			if entry.Data, err = canonical.JSON(data); err != nil {
				return fmt.Errorf("%w: --json: %w", errUsage, err)
			}
		}
		return a.pushEntry(cmd.Context(), args[0], &layout, entry)
	}
	return c
}

// pushedColumns are the columns of the result of a push.
var pushedColumns = columns[ports.PushReply]{
	{"now", false, func(r *ports.PushReply) any { return r.Now.Time() }},
	{"new", false, func(r *ports.PushReply) any { return r.New }},
	{"merged", false, func(r *ports.PushReply) any { return r.Merged }},
	{"duplicate", false, func(r *ports.PushReply) any { return r.Duplicate }},
	{"superseded", true, func(r *ports.PushReply) any { return r.Superseded }},
	{"repeated", true, func(r *ports.PushReply) any { return r.Repeated }},
}

func (a *app) pushEntry(ctx context.Context, name string, layout *layoutFlags, entry core.Entry) error {
	if err := entry.Validate(); err != nil {
		return err
	}
	if _, err := a.open(ctx); err != nil {
		return err
	}

	queue, err := a.declared(ctx, layout, name)
	if err != nil {
		return err
	}

	entry.Payload = queue.Merge.Stored(entry.Payload)
	reply, err := a.backend.Store.Push(ctx, ports.PushRequest{
		Queue: queue.Name, Shards: queue.Shards, Generation: queue.Generation,
		Stamped: queue.Merge.Same == core.SamePush, Entries: []core.Entry{entry},
	})
	if err != nil {
		return err
	}
	return one(a, pushedColumns, &reply)
}
