package ports_test

import (
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestANodeIsAliveDrainingOrGone(t *testing.T) {
	const now core.Instant = 100
	tests := []struct {
		node ports.Node
		want string
	}{
		{ports.Node{ExpiresAt: now + 1}, "alive"},
		{ports.Node{ExpiresAt: now + 1, Draining: true}, "draining"},
		{ports.Node{ExpiresAt: now}, "gone"},
		{ports.Node{ExpiresAt: now - 1, Draining: true}, "gone"},
	}

	for _, tt := range tests {
		if got := tt.node.State(now).String(); got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.node, got, tt.want)
		}
	}

	if got := ports.NodeState(9).String(); got != "NodeState(9)" {
		t.Errorf("an unknown state is %s", got)
	}
}
