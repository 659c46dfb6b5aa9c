package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/internal/tier"
)

// TestOnPostgres uses one server for all that needs one.
func TestOnPostgres(t *testing.T) {
	url, stop, err := startPostgres(t.Context())
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})

	t.Run("a work of each kind is done", func(t *testing.T) { testWorks(t, url, "handle,push-one") })
	t.Run("every work is done", func(t *testing.T) {
		tier.Long(t, "some works measure for seconds, whatever the number of jobs")
		// The second run is refused unless the first has left nothing.
		testWorks(t, url,
			"handle,handle-one,push-batch,push-one,latency,latency-apart,io,io-hot,mixed,start,idle,backlog")
		testWorks(t, url, "snapshot,churn,churn-snapshot")
	})
	t.Run("what is not empty is refused", func(t *testing.T) { testRefusals(t, url) })
}

// testWorks does the named works with a few jobs, on a database that others have left empty.
func testWorks(t *testing.T, url, names string) {
	t.Helper()
	var out, log strings.Builder
	o := options{rival: riverName, works: names, postgres: url, jobs: 60, runs: 1, json: true}
	if err := run(t.Context(), o, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if diff := cmp.Diff(strings.Split(names, ","), measuredWorks(t, out.String())); diff != "" {
		t.Error(diff)
	}
}

// measuredWorks returns the works in the output of -json, in order, and checks that each value is
// a number.
func measuredWorks(t *testing.T, out string) []string {
	t.Helper()
	var works []string

	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var row struct {
			Work, System, Setting, Unit string
			Median                      float64
		}

		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.Median <= 0 || row.System == "" || row.Setting == "" || row.Unit == "" {
			t.Errorf("%+v", row)
		}
		if len(works) == 0 || works[len(works)-1] != row.Work {
			works = append(works, row.Work)
		}
	}
	return works
}

func testRefusals(t *testing.T, url string) {
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()

	tests := []struct{ name, before, want string }{
		{"somebody's table", "CREATE TABLE mine (x int)", "database postgres has 1 tables; give one that is empty"},
		{
			"an unsafe server",
			"DROP TABLE mine; ALTER DATABASE postgres SET synchronous_commit = off",
			"the server has synchronous_commit not on",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := conn.Exec(t.Context(), tt.before); err != nil {
				t.Fatal(err)
			}
			_, err := emptyPostgres(t.Context(), url)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
