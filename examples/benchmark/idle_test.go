package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandCalls(t *testing.T) {
	const info = "# Commandstats\r\n" +
		"cmdstat_evalsha:calls=42,usec=700,usec_per_call=16.66,rejected_calls=0,failed_calls=1\r\n" +
		"cmdstat_client|setname:calls=3,usec=7,usec_per_call=2.33,rejected_calls=0,failed_calls=0\r\n"
	want := map[string]int64{"evalsha": 42, "client|setname": 3}
	if diff := cmp.Diff(want, commandCalls(info)); diff != "" {
		t.Error(diff)
	}
}
