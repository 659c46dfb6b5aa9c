package specs_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
)

func TestWordsOfSpecs(t *testing.T) {
	for expression, want := range map[string]string{
		"0 23 * * *":           "each day at 23:00",
		"@daily":               "each day at 00:00",
		"0 6,18 * * *":         "each day at 06:00 and 18:00",
		"15,45 6,18 * * *":     "each day at 06:15, 06:45, 18:15 and 18:45",
		"0 6 * * mon-fri":      "weekdays at 06:00",
		"30 9 * * sat,sun":     "weekends at 09:30",
		"0 6 * * 6-7":          "weekends at 06:00",
		"0 6 * * 0-6":          "each day at 06:00",
		"5 4 * * 1":            "Mondays at 04:05",
		"5 4 * * 7":            "Sundays at 04:05",
		"@weekly":              "Sundays at 00:00",
		"0 8 * * 1,3,5":        "Mondays, Wednesdays and Fridays at 08:00",
		"@monthly":             "day 1 of each month at 00:00",
		"30 2 15 * *":          "day 15 of each month at 02:30",
		"@yearly":              "each 1 January at 00:00",
		"0 9 24 dec *":         "each 24 December at 09:00",
		"* * * * *":            "every minute",
		"*/15 * * * *":         "every 15 minutes",
		"*/1 * * * *":          "every minute",
		"@hourly":              "every hour",
		"20 * * * *":           "every hour at minute 20",
		"0 */6 * * *":          "every 6 hours",
		"10 */6 * * *":         "every 6 hours at minute 10",
		"*/15 * * * 1-5":       "weekdays, every 15 minutes",
		"0 * 1 * *":            "day 1 of each month, every hour",
		"*/7 * * * *":          "*/7 * * * *",
		"0 */5 * * *":          "0 */5 * * *",
		"*/15 */2 * * *":       "*/15 */2 * * *",
		"*/15 9-17 * * *":      "*/15 9-17 * * *",
		"0 1,2,3,4,5 * * *":    "0 1,2,3,4,5 * * *",
		"0 0 1 * mon":          "0 0 1 * 1",
		"0 0 1-7 * *":          "0 0 1-7 * *",
		"0 0 1 jan,jul *":      "0 0 1 1,7 *",
		"0 0 * 3 *":            "0 0 * 3 *",
		"0 6 * * mon-thu":      "0 6 * * 1-4",
		"0 6 */2 * *":          "0 6 */2 * *",
		"0,30 */2 * * *":       "0,30 */2 * * *",
		"5/10 * * * *":         "5/10 * * * *",
		"  0   6 * *  mon-fri": "weekdays at 06:00",
	} {
		spec, err := core.CronSpec(expression, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		if got := specs.Words(spec); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
		if zone := specs.Zone(spec); zone != "Europe/Berlin" {
			t.Errorf("%s: the zone %q", expression, zone)
		}
	}

	for every, want := range map[time.Duration]string{
		time.Second: "every second", 90 * time.Second: "every 90 seconds", time.Minute: "every minute", 15 * time.Minute: "every 15 minutes",
		time.Hour: "every hour", 24 * time.Hour: "every 24 hours", 90 * time.Minute: "every 90 minutes", 1500 * time.Millisecond: "every 1.5s",
	} {
		spec, err := core.IntervalSpec(every, 7)
		if err != nil {
			t.Fatal(err)
		}
		if got := specs.Words(spec); got != want || specs.Zone(spec) != "UTC" {
			t.Errorf("%v: %q in %s, want %q in UTC", every, got, specs.Zone(spec), want)
		}
	}

	for _, other := range []string{"", "lunar 3", "every soon 0", "cron 1 2"} {
		if got := specs.Words(other); got != other {
			t.Errorf("%q became %q", other, got)
		}
	}
}
