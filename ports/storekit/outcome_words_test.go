package storekit

import (
	"errors"
	"testing"
)

func TestUnknownOutcomeNamesTheStoreOnceWithoutTabs(t *testing.T) {
	for _, words := range []string{"failed:\n\ta\n\tb", "postgres: failed: a b", "failed:\ta b"} {
		if got := UnknownOutcome("postgres", errors.New(words)).Error(); got != "postgres: failed: a b" {
			t.Errorf("%q", got)
		}
	}
}
