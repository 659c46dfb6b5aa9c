// Package postgres_test has the tests of the store on Postgres.
package postgres_test

import (
	"testing"

	"github.com/skeinq/skein/internal/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

var must = kit.Must
