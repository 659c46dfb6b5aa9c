package redis

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// transactionsFail is the server of a client that answers plain commands. Each exchange of several
// commands, such as a transaction or scripts, fails.
type transactionsFail struct {
	answers
	err error

	mu sync.Mutex
	// exchanges has the first command of each exchange.
	exchanges []string
}

func (f *transactionsFail) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if name := cmd.Name(); name == "eval" || name == "evalsha" {
			return f.fail(cmd)
		}
		return f.answers.ProcessHook(next)(ctx, cmd)
	}
}

func (f *transactionsFail) ProcessPipelineHook(goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(_ context.Context, cmds []goredis.Cmder) error { return f.fail(cmds...) }
}

func (f *transactionsFail) fail(cmds ...goredis.Cmder) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exchanges = append(f.exchanges, cmds[0].Name())
	for _, cmd := range cmds {
		cmd.SetErr(f.err)
	}
	return f.err
}

// A look waits once for a server that does not reply. Scripts follow a transaction only if the
// server has replied with an error, and the transaction is not sent again if the user may not send
// it.
func TestALookSendsScriptsAfterAReplyOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		err           error
		first, second string
	}{
		"no reply in time": {os.ErrDeadlineExceeded, "multi", "multi"},
		"no rights": {
			refusal("NOPERM this user has no permissions to run the 'multi' command"),
			"multi evalsha", "evalsha",
		},
		"another error": {
			refusal("EXECABORT Transaction discarded because of previous errors."),
			"multi evalsha", "multi evalsha",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := goredis.NewClient(&goredis.Options{Addr: "10.0.0.1:1"})
			defer client.Close()
			server := &transactionsFail{answers: listing(1), err: tt.err}
			client.AddHook(server)
			store := New(client, Options{})
			store.server.done.Store(true)

			for i, want := range []string{tt.first, tt.second} {
				server.exchanges = nil
				_, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders-0"}})
				if err == nil || errors.Is(err, ports.ErrUnknownQueue) {
					t.Errorf("Stats gave %v, want the error of the server", err)
				}
				if got := strings.Join(server.exchanges, " "); got != want {
					t.Errorf("look %d sent %q, want %q", i+1, got, want)
				}
			}
		})
	}
}
