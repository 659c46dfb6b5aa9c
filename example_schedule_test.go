package skein_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// A report for each tenant, each weekday at six in the tenant's time zone. Servers push the
// payload at each tick, once, whatever servers start, stop or die.
func ExampleQueue_Schedule() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{})

	zones := map[string]string{"tenant-1": "Europe/Berlin", "tenant-2": "America/New_York"}
	for tenant, zone := range zones {
		err := reports.Schedule(ctx, client, "daily", skein.Cron("0 6 * * mon-fri", zone), tenant, "daily report",
			skein.Jitter(10*time.Minute))
		if err != nil {
			log.Fatal(err)
		}
	}
	err := reports.Schedule(ctx, client, "daily", skein.Cron("0 6 * *", "UTC"), "tenant-3", "daily report")
	fmt.Println(err)
	// Output:
	// schedule "daily" of id "tenant-3" in queue "reports": invalid schedule: the cron expression "0 6 * *" has 4 fields; give minute, hour, day of month, month and day of week
}

// Schedules that belong to the program are declared by its servers. Raise the version with each
// change.
func ExampleScheduleSet() {
	store := memory.New(memory.Options{})
	caches := skein.NewQueue("caches", skein.QueueOptions[string]{})
	server := skein.NewServer(store, skein.ServerOptions{
		Schedules: skein.ScheduleSet{
			Name:    "caches",
			Version: 3,
			Prune:   true,
			Schedules: []skein.Schedule{
				caches.NewSchedule("refresh", skein.Interval(15*time.Minute), "prices", "refresh", skein.Skip()),
				caches.NewSchedule("sweep", skein.Cron("30 3 * * sun", "UTC"), "prices", "sweep"),
			},
		},
	}, caches.Each(func(_ context.Context, cache, what string) error {
		fmt.Println(what, cache)
		return nil
	}))

	if _, err := server.RunDue(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
}
