package storekit

import "github.com/skeinq/skein/core"

// PutBackTime returns the rule for the PerformAt of a job that is put back, as the number that
// scripts and SQL functions take. 1 means that PerformAt stays. 0 means that it is now + Delay. 2
// means the same for a job that awaits a push, which merges as [core.PutBack.Merge] describes.
func PutBackTime(b *core.PutBack) byte {
	switch {
	case b.SameTime:
		return 1
	case b.Awaits:
		return 2
	}
	return 0
}
