package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/internal/tier"
)

// TestWorksOfManyLanesOnRedis does the works that have up to a thousand lanes, with few jobs.
func TestWorksOfManyLanesOnRedis(t *testing.T) {
	t.Run("that end with their jobs", func(t *testing.T) { testOnRedis(t, "io,io-hot,start") })
	t.Run("that last", func(t *testing.T) {
		tier.Long(t, "they measure for seconds, whatever the number of jobs")
		testOnRedis(t, "mixed,idle")
	})
}

func testOnRedis(t *testing.T, names string) {
	t.Helper()
	var out, log strings.Builder
	err := run(t.Context(), options{rival: asynqName, works: names, jobs: 60, runs: 1, json: true}, &out, &log)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if diff := cmp.Diff(strings.Split(names, ","), measuredWorks(t, out.String())); diff != "" {
		t.Error(diff)
	}
}
