package redis

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// refusal is an error reply.
type refusal string

func (e refusal) Error() string { return string(e) }
func (refusal) RedisError()     {}

var _ goredis.Error = refusal("")

// A connection that takes too long is not the caller's deadline, and the error contains its
// address.
func TestATimeoutOfAConnectionNamesItsAddress(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{
		Addr:       "127.0.0.1:1",
		MaxRetries: -1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{Deadline: time.Now().Add(-time.Second)}).DialContext(ctx, network, addr)
		},
	})
	defer client.Close()

	_, err := New(client, Options{}).Queues(t.Context())
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v; want an error that names 127.0.0.1:1 and is no deadline of the caller's", err)
	}
	if err != nil && ports.FailureOf(err) != ports.FailureUnreachable {
		t.Errorf("%v is a failure of the kind %v, want %v", err, ports.FailureOf(err), ports.FailureUnreachable)
	}
}
