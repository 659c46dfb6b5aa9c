package storekit

import "github.com/skeinq/skein/core"

// PutBackTime returns how a store finds the PerformAt of a job that is put back, as the number that
// scripts and SQL functions take: 1 if it stays, 2 for a job that awaits a push, otherwise 0. With
// 0 and 2 it is the Delay from now.
func PutBackTime(b *core.PutBack) byte {
	switch {
	case b.SameTime:
		return 1
	case b.Awaits:
		return 2
	}
	return 0
}
