package main

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptions(t *testing.T) {
	tests := []struct {
		name    string
		options options
		want    string
	}{
		{"River on a Postgres", options{rival: riverName, postgres: "postgres://", jobs: 1, runs: 1}, "nil"},
		{"asynq on a Redis", options{rival: asynqName, redis: "redis://", jobs: 1, runs: 1}, "nil"},
		{"nobody on a Redis", options{rival: "none", jobs: 1, runs: 1}, "nil"},
		{"an unknown rival", options{rival: "cron"}, `there is no rival "cron"; give one of asynq, river, none`},
		{
			"River on a Redis",
			options{rival: riverName, redis: "redis://"},
			"-rival river: give -postgres with river, and -redis with the others",
		},
		{
			"asynq on a Postgres",
			options{rival: asynqName, postgres: "postgres://"},
			"-rival asynq: give -postgres with river, and -redis with the others",
		},
		{"no jobs", options{rival: riverName, runs: 1}, "-jobs 0 -runs 1: give at least one of each"},
		{"no runs", options{rival: riverName, jobs: 1}, "-jobs 1 -runs 0: give at least one of each"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := "nil"
			if err := tt.options.check(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNothingIsStartedForAnUnknownWork(t *testing.T) {
	err := run(t.Context(), options{rival: riverName, works: "fly", jobs: 1, runs: 1}, io.Discard, io.Discard)
	if err == nil || err.Error() != `there is no work "fly"` {
		t.Errorf("got %v", err)
	}
}
