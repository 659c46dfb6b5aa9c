package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// TestScrapeOfAServer runs jobs, some of which fail, and scrapes the counts by HTTP.
func TestScrapeOfAServer(t *testing.T) {
	store := memory.New(memory.Options{})
	m := newMetrics(t, Options{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, newCollector(t, store))
	orders := skein.NewQueue("orders", skein.QueueOptions[int]{
		Shards:     3,
		MaxRetries: 1,
		Backoff:    func(int) time.Duration { return 0 },
	})
	client := skein.NewClient(store, skein.ClientOptions{Observer: m})
	for i := range 10 {
		if err := orders.Push(t.Context(), client, strconv.Itoa(i), i); err != nil {
			t.Fatal(err)
		}
	}
	server := skein.NewServer(store, skein.ServerOptions{Observer: m, Logger: slog.New(slog.DiscardHandler)},
		orders.Each(func(_ context.Context, _ string, n int) error {
			if n < 4 {
				return errors.New("no")
			}
			return nil
		}))
	m.Watch(server.Node)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer web.Close()
	want := map[string]float64{
		"skein_pushes_total/stored":   10,
		"skein_pushed_total/new":      10,
		"skein_jobs_started_total":    14,
		"skein_jobs_total/done":       6,
		"skein_jobs_total/failed":     4,
		"skein_jobs_total/buried":     4,
		"skein_payloads_buried_total": 4,
		"skein_leases_held":           3,
	}
	await(t, func() error { return differ(want, scrape(t, web.URL)) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func differ(want map[string]float64, got map[string]float64) error {
	for name, n := range want {
		if got[name] != n {
			return fmt.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
	return nil
}

// scrape returns counters and gauges of the queue orders by name and second label.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for name, f := range families {
		for _, metric := range f.Metric {
			key, own := name, false
			for _, l := range metric.Label {
				if own = own || l.GetValue() == "orders"; l.GetName() != "queue" {
					key += "/" + l.GetValue()
				}
			}
			if own {
				values[key] = number(metric)
			}
		}
	}
	return values
}

func number(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }
