package skeintest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/skeinq/skein"
)

// The code under test of user_test.go.

type item struct{ Number int }

var orders = skein.NewQueue[item]("orders", skein.QueueOptions[item]{
	MaxRetries: 1,
	Score:      func(i item) float64 { return float64(i.Number) },
})

func ship(_ context.Context, _ string, items []item) error {
	for _, i := range items {
		if i.Number == 0 {
			return fmt.Errorf("no item %d", i.Number)
		}
	}
	return nil
}

func TestAUsersTestIsShort(t *testing.T) {
	text, err := os.ReadFile("user_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines >= 30 {
		t.Errorf("user_test.go has %d lines; a user's test takes less than 30", lines)
	}
}
