package pages

import "github.com/skeinq/skein"

type OrderPlaced struct{ Total int }

var (
	Orders *skein.Queue[OrderPlaced]
	id     string
	total  int
	sum    func([]OrderPlaced) int
)
