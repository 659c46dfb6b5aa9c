// Package figures formats numbers, durations and sizes for people, in the same way wherever Skein
// shows them.
package figures

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Never is what stands in place of the time when a held job may run.
const Never = "never, until it is released"

// exact is the largest number that Count writes in full.
const exact = 99_999

// Count writes a number: in full up to 99,999, and beyond as 1.23 M.
func Count(n int64) string {
	if n < 0 {
		return "-" + Count(-max(n, -math.MaxInt64))
	}
	if n <= exact {
		return Exact(n)
	}
	return scaled(float64(n), 1000, "k", "M", "G", "T", "P", "E")
}

// Exact writes a number in full, with commas: 1,234,567.
func Exact(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// Bytes writes a size: 12 B, 3.4 KiB, 1.2 GiB.
func Bytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return scaled(float64(n), 1024, "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
}

// scaled writes three digits and a unit. Each unit is base times the previous one.
func scaled(n, base float64, units ...string) string {
	unit := ""
	for _, next := range units {
		if digits := threeDigits(n); unit != "" && n < base && digits != strconv.Itoa(int(base)) {
			break
		}
		n, unit = n/base, next
	}
	return threeDigits(n) + " " + unit
}

func threeDigits(n float64) string {
	decimals := 0
	switch {
	case n < 9.995:
		decimals = 2
	case n < 99.95:
		decimals = 1
	}
	text := strconv.FormatFloat(n, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Span writes a duration in at most two units: 0 s, 12 ms, 1.2 s, 4 min 12 s, 3 h, 2 d 4 h. A
// negative duration has a minus sign.
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-max(d, -math.MaxInt64))
	}

	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < 999500*time.Microsecond:
		return strconv.Itoa(int(math.Round(float64(d)/float64(time.Millisecond)))) + " ms"
	case d < 9950*time.Millisecond:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case d < 59500*time.Millisecond:
		return strconv.Itoa(int(math.Round(d.Seconds()))) + " s"
	case d.Round(time.Second) < time.Hour:
		return two(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	case d.Round(time.Minute) < 24*time.Hour:
		return two(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}
	return two(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

// Rough writes a duration for a quick look: like Span under ten minutes, and above that in one unit:
// 25 min, 3 h, 2 d.
func Rough(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Rough(-max(d, -math.MaxInt64))
	case d < time.Minute:
		return Span(d.Round(time.Microsecond))
	case d.Round(time.Second) < 10*time.Minute:
		return Span(d.Round(time.Second))
	case d.Round(time.Minute) < time.Hour:
		return Span(d.Round(time.Minute))
	case d.Round(time.Hour) < 24*time.Hour:
		return Span(d.Round(time.Hour))
	}
	return Span(d.Round(24 * time.Hour))
}

func two(d, large time.Duration, largeUnit string, small time.Duration, smallUnit string) string {
	text := strconv.FormatInt(int64(d/large), 10) + " " + largeUnit
	if remaining := d % large / small; remaining > 0 {
		text += " " + strconv.FormatInt(int64(remaining), 10) + " " + smallUnit
	}
	return text
}
