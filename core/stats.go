package core

import (
	"math"
	"time"
)

// Stats is the statistics of a queue (docs/rules.md 7). The zero value has counted nothing.
type Stats struct {
	// Processed and Failed count jobs by the fields of the same name of their [Settlement].
	Processed uint64
	Failed    uint64
	// Wait counts the times from [State.WaitsFrom] to the start of a job, and Run the times from
	// start to end. A job that never started is in neither.
	Wait Histogram
	Run  Histogram
	// WaitSum and RunSum are the sums of the durations in Wait and Run, in microseconds.
	WaitSum uint64
	RunSum  uint64
	// WaitSquares and RunSquares are the sums of the squares of the durations in Wait and Run, in
	// seconds squared. With count and sum they give the standard deviation.
	WaitSquares float64
	RunSquares  float64
}

// ObserveWait counts how long a job waited. A duration below 0 counts as 0.
func (s *Stats) ObserveWait(d time.Duration) {
	d = max(0, d)
	s.Wait.Observe(d)
	s.WaitSum += uint64(d.Microseconds())
	s.WaitSquares += d.Seconds() * d.Seconds()
}

// ObserveRun counts how long a job ran. A duration below 0 counts as 0.
func (s *Stats) ObserveRun(d time.Duration) {
	d = max(0, d)
	s.Run.Observe(d)
	s.RunSum += uint64(d.Microseconds())
	s.RunSquares += d.Seconds() * d.Seconds()
}

// Add adds the counts of other.
func (s *Stats) Add(other *Stats) {
	s.Processed += other.Processed
	s.Failed += other.Failed
	s.Wait.Add(&other.Wait)
	s.Run.Add(&other.Run)
	s.WaitSum += other.WaitSum
	s.RunSum += other.RunSum
	s.WaitSquares += other.WaitSquares
	s.RunSquares += other.RunSquares
}

// Subtract removes the counts of other, which Add has added.
func (s *Stats) Subtract(other *Stats) {
	s.Processed -= other.Processed
	s.Failed -= other.Failed
	s.Wait.Subtract(&other.Wait)
	s.Run.Subtract(&other.Run)
	s.WaitSum -= other.WaitSum
	s.RunSum -= other.RunSum
	s.WaitSquares -= other.WaitSquares
	s.RunSquares -= other.RunSquares
}

// Counted returns the number of all counted events: Processed, Failed, and the durations of both
// histograms. Each new event makes it larger. So of two states of the same Stats, the one with the
// larger number is newer.
func (s *Stats) Counted() uint64 {
	return s.Processed + s.Failed + s.Wait.Count() + s.Run.Count()
}

// MeanWait returns the mean of the durations in Wait. It returns 0 if Wait is empty.
func (s *Stats) MeanWait() time.Duration { return mean(s.Wait.Count(), s.WaitSum) }

// MeanRun returns the mean of the durations in Run. It returns 0 if Run is empty.
func (s *Stats) MeanRun() time.Duration { return mean(s.Run.Count(), s.RunSum) }

// WaitDeviation returns the standard deviation of the durations in Wait. It returns 0 if Wait is
// empty.
func (s *Stats) WaitDeviation() time.Duration {
	return deviation(s.Wait.Count(), s.WaitSum, s.WaitSquares)
}

// RunDeviation returns the standard deviation of the durations in Run. It returns 0 if Run is
// empty.
func (s *Stats) RunDeviation() time.Duration {
	return deviation(s.Run.Count(), s.RunSum, s.RunSquares)
}

// mean returns the mean of n durations whose sum is in microseconds.
func mean(n, sum uint64) time.Duration {
	if n == 0 {
		return 0
	}
	return seconds(float64(sum) / 1e6 / float64(n))
}

// deviation returns the standard deviation of n durations, given their sum in µs and the sum of
// their squares in s².
func deviation(n, sum uint64, squares float64) time.Duration {
	if n == 0 {
		return 0
	}
	mean := float64(sum) / 1e6 / float64(n)
	return seconds(math.Sqrt(max(0, squares/float64(n)-mean*mean)))
}

// seconds returns a duration of whole microseconds, or the longest one.
func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(s*1e6)) * time.Microsecond
}
