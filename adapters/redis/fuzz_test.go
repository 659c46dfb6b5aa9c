package redis

import (
	"testing"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func FuzzText(f *testing.F) {
	f.Add("5 1 0 1 3")
	f.Add("0 0 5 1 7=3 +")
	f.Add("1+0+5+1+7=-1")
	f.Add(`5 6 {"name":"web"}`)
	f.Add("redis_version:7.0.15\r\n")

	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parseQueueRecord("q", text); err == nil &&
			(core.ValidateQueue("q", r.Shards) != nil || r.Merge.Validate() != nil) {
			t.Errorf("a queue of %d shards with the merge rule %v", r.Shards, r.Merge)
		}
		addBlock(storekit.NewHistory(ports.HistoryRequest{}, 0), 0, []byte(text))
		if n, err := parseNode("o", text); err == nil && n.Owner != "o" {
			t.Errorf("got the node %q", n.Owner)
		}
		_ = parseVersion(text)
	})
}

// FuzzReply reads replies of any shape as those of each script.
func FuzzReply(f *testing.F) {
	f.Add([]byte("\x05i\x01s\x02okl\x00n"))
	f.Add([]byte("\x0as\x02oki\x01i\x02i\x03i\x00i\x04l\x00l\x00l\x00"))

	f.Fuzz(func(_ *testing.T, data []byte) {
		value := any(nil)
		if len(data) > 0 {
			value = valuesOf(&data, int(data[0]), 3)
		}

		r := record.ReplyOf(value)
		_, _ = turned(&r, true)
		r = record.ReplyOf(value)
		_, _ = acquired(&r)
		_, _ = parseView("a", value, jobKind)
		_, _ = parseView("a", value, deadKind)
		_, _ = parseFound(value, &ports.FindRequest{ID: "a"}, core.Shard{})

		r = record.ReplyOf(value)
		_, _, _ = parseShardStats(core.Shard{}, r.Rest())
		_ = addGroups(&storekit.GroupSums{}, r.Rest())
		r = record.ReplyOf(value)
		_, _ = parseNodes(&r)
		r = record.ReplyOf(value)
		_, _ = parseStatuses(&r)

		var sums *storekit.History
		_ = addHistory(&sums, &ports.HistoryRequest{}, value)
		_ = addHistory(&sums, &ports.HistoryRequest{Step: ports.Day}, value)
		o := exchange.Outcome{Value: value}
		_, _, _ = addRows(&o, jobKind, map[string]row[core.Job]{})
		_, _, _ = addRows(&o, deadKind, map[string]row[core.DeadLetter]{})
		r = record.ReplyOf(value)
		_ = r.Members(true)
		_, _, _ = parseHead(&o)
	})
}

// valuesOf makes a list of n values out of bytes.
func valuesOf(data *[]byte, n, depth int) []any {
	next := func() byte {
		if len(*data) == 0 {
			return 0
		}
		b := (*data)[0]
		*data = (*data)[1:]
		return b
	}

	var list []any
	for ; n > 0 && len(*data) > 0; n-- {
		switch kind := next(); {
		case kind == 'i':
			list = append(list, int64(int8(next())))
		case kind == 's':
			length := min(int(next()), len(*data))
			list = append(list, string((*data)[:length]))
			*data = (*data)[length:]
		case kind == 'l' && depth > 0:
			list = append(list, valuesOf(data, int(next()), depth-1))
		default:
			list = append(list, nil)
		}
	}
	return list
}
