package kit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// Checked returns the statuses of a store's checks by name, for a store of one server.
func Checked(t *testing.T, store inspect.Store) map[string]string {
	t.Helper()
	rows, err := inspect.New(store, inspect.Options{}).Checks(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	statuses := make(map[string]string)
	for _, r := range rows {
		if (r.Status == inspect.CheckOK) != (r.Advice == "") || r.Value == "" {
			t.Errorf("a row without a value, or with advice although it is OK, or without although it is not: %+v", r)
		}
		if _, twice := statuses[r.Name]; twice {
			t.Errorf("a second row of one name: %+v", r)
		}
		statuses[r.Name] = r.Status.String()
	}

	return statuses
}

// Unusable checks that a call returned ErrUnusable with a text.
func Unusable(t *testing.T, call string, err error, want string) {
	t.Helper()
	if !errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s gave %v; want ErrUnusable that says %q", call, err, want)
	}
}

// CheckedServers returns the rows of the store's servers.
func CheckedServers(t *testing.T, store inspect.Store) map[string][]inspect.Check {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rows, err := inspect.New(store, inspect.Options{}).Checks(ctx)
	Must(t, err)
	servers := make(map[string][]inspect.Check)
	for _, r := range rows {
		servers[r.Server] = append(servers[r.Server], r)
	}
	return servers
}

// Named returns the row of a name.
func Named(rows []inspect.Check, name string) inspect.Check {
	for _, r := range rows {
		if r.Name == name {
			return r
		}
	}
	return inspect.Check{}
}
