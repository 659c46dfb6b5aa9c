package pages

import "github.com/skeinq/skein"

type counter struct{}

func (counter) InThisSecond(tenant string) int { return len(tenant) }

var (
	imports         = skein.NewQueue("imports", skein.QueueOptions[string]{})
	pushed          counter
	tenant, id, row string
)
