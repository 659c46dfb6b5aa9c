package figures

import (
	"math"
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 99999: "99,999",
		100000: "100 k", 123456: "123 k", 999499: "999 k", 999999: "1 M",
		1234567: "1.23 M", 12345678: "12.3 M", -12345: "-12,345", math.MaxInt64: "9.22 E", math.MinInt64: "-9.22 E",
	} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}

	for n, want := range map[int64]string{
		0:             "0",
		100000:        "100,000",
		-1234567:      "-1,234,567",
		math.MaxInt64: "9,223,372,036,854,775,807",
	} {
		if got := Exact(n); got != want {
			t.Errorf("Exact(%d) is %q, want %q", n, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0:         "0 B",
		1023:      "1023 B",
		1024:      "1 KiB",
		1536:      "1.5 KiB",
		123 << 20: "123 MiB",
		5 << 40:   "5 TiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) is %q, want %q", n, got, want)
		}
	}
}

func TestRough(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 131 * time.Millisecond: "131 ms", 11 * time.Second: "11 s",
		9*time.Minute + 42*time.Second: "9 min 42 s", 10*time.Minute - 1: "10 min",
		25*time.Minute + 29*time.Second: "25 min", 59*time.Minute + 31*time.Second: "1 h",
		3*time.Hour + 20*time.Minute: "3 h", 23*time.Hour + 40*time.Minute: "1 d", 60 * time.Hour: "3 d", -time.Hour: "-1 h",
	} {
		if got := Rough(d); got != want {
			t.Errorf("Rough(%v) is %q, want %q", d, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 40 * time.Microsecond: "40 µs", 12 * time.Millisecond: "12 ms", 999 * time.Millisecond: "999 ms",
		999900 * time.Microsecond: "1 s", 1200 * time.Millisecond: "1.2 s", 2 * time.Second: "2 s",
		42 * time.Second: "42 s", 59900 * time.Millisecond: "1 min",
		4*time.Minute + 12*time.Second: "4 min 12 s", time.Hour: "1 h", 3*time.Hour + 20*time.Minute: "3 h 20 min",
		52 * time.Hour: "2 d 4 h", -3 * time.Second: "-3 s", 24*time.Hour - time.Second: "1 d",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) is %q, want %q", d, got, want)
		}
	}
}
