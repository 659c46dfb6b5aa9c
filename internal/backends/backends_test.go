package backends_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/backends"
)

func TestOpen(t *testing.T) {
	cases := []struct{ url, store, err string }{
		{"memory://", "*memory.Store", ""},
		{"redis://localhost:6379/2", "*redis.Store", ""},
		{"rediss://user:pass@localhost:6379?prefix=mine:", "*redis.Store", ""},
		{"redis-cluster://localhost:7000?addr=localhost:7001&prefix=mine:", "*redis.Store", ""},
		{"redis://localhost/notanumber", "", "database number"},
		{"mysql://localhost", "", `unknown scheme "mysql"`},
		{"postgres://me:pass@localhost:1/jobs?connect_timeout=1", "", "connect"},
		{"postgresql://me:pass@localhost/jobs?sslmode=perhaps", "", "sslmode"},
		{"memory", "", `unknown scheme ""`},
		{"redis://secret:w0rd@localhost?nosuch=1", "", "nosuch"},
		{"://", "", "not a URL"},
		{"redis://me:wo/w0rd@localhost", "", "not a URL"},
		{"postgres://localhost/jobs?password=w0rd&sslmode=perhaps", "", "xxxxx"},
	}

	for _, c := range cases {
		t.Run(c.url, func(t *testing.T) {
			store, closeStore, err := backends.Open(t.Context(), c.url)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "w0rd") ||
					strings.Contains(err.Error(), ":pass@") {
					t.Errorf("Open = %v, want an error that says %q and no password", err, c.err)
				}
				return
			}

			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%T", store); got != c.store {
				t.Errorf("Open made a %s, want a %s", got, c.store)
			}
			if err := closeStore(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}
