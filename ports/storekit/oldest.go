package storekit

// OldestJobs is the number of jobs, first by PerformAt, that a store reads for
// [ports.Counts].Oldest. For the jobs behind them it uses their PerformAt.
const OldestJobs = 100
