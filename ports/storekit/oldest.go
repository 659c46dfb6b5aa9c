package storekit

// OldestJobs is how many jobs of a list by PerformAt a store looks at for [ports.Counts].Oldest.
// It counts those behind them from their PerformAt.
const OldestJobs = 100
