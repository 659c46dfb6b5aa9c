package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionNamesTheCommitOfACheckout(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123abcd"}
	for _, test := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "v1.2.3"},
		{"(devel)", nil, "(devel)"},
		{"v1.2.3", []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, "v1.2.3 (commit 0123abcd)"},
		{"(devel)", []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}, "(devel) (commit 0123abcd, modified)"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: test.version}, Settings: test.settings}
		if got := versionOf(info); got != test.want {
			t.Errorf("version of %+v: %s, want %s", info, got, test.want)
		}
	}
}
