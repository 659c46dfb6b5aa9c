package pages

import (
	"os"

	"github.com/skeinq/skein/inspect"
)

var (
	from, to *inspect.Inspector
	file     *os.File
)
