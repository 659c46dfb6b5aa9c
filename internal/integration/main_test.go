package integration_test

import (
	"testing"

	"github.com/skeinq/skein/internal/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

var must = kit.Must
