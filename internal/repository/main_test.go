package repository

import (
	"fmt"
	"os"
	"testing"
)

// The tests name files from the top of the checkout.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
