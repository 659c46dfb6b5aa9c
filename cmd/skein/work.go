package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/adapters/prometheus"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/webhook"
	"github.com/skeinq/skein/ports"
)

// workedQueue is a queue whose handler is behind a URL. Its flags stand on the command line or, for
// several queues, in the lines of a file.
type workedQueue struct {
	name, url   string
	layout      layoutFlags
	secretFile  string
	callTimeout time.Duration
	maxRetries  int
	hold        bool
	maxPayloads int
	maxLanes    int
	maxRunning  int
	rate        string
	keep        time.Duration
}

// flags returns the flags of the queue.
func (q *workedQueue) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("queue", pflag.ContinueOnError)
	q.layout.add(f)
	f.StringVar(&q.secretFile, "secret-file", "",
		"sign the calls: each line of this `FILE` is a secret, whsec_ and the Base64 of 24 to 64 bytes")
	f.DurationVar(&q.callTimeout, "call-timeout", 30*time.Second, "cut off a call that takes longer; it fails")
	f.IntVar(&q.maxRetries, "max-retries", skein.DefaultMaxRetries,
		"the number of retries of a job, and of answers 429 or 503 in a row that only put it off")
	f.BoolVar(&q.hold, "hold", false, "hold a job that has used up its retries, instead of burying its first payload")
	f.IntVar(&q.maxPayloads, "max-payloads", core.MaxTurnPayloads, "the largest number of payloads in a call")
	f.IntVar(&q.maxLanes, "max-lanes", 0,
		"with --queues-file: the largest number of calls of this queue at once by this process; 0 is that of --lanes")
	f.IntVar(&q.maxRunning, "max-running", 0, "the largest number of calls at once by all processes; 0 is no limit")
	f.StringVar(&q.rate, "rate", "", "the `RATE` at which all processes start calls, such as 10/1m or 100/day+20")
	f.DurationVar(&q.keep, "keep", 0,
		"keep records of done jobs for this time, with the JSON that the handler answers as the result")
	return f
}

// check returns an error that names a flag with an invalid value, or nil. The URL and the name of
// the queue are checked where they are used.
func (q *workedQueue) check() error {
	numbers := []struct {
		flag               string
		value, least, most int
	}{
		{"max-retries", q.maxRetries, 0, 1 << 20},
		{"max-payloads", q.maxPayloads, 1, core.MaxTurnPayloads},
		{"max-lanes", q.maxLanes, 0, 1 << 20},
		{"max-running", q.maxRunning, 0, ports.MaxPermits},
	}
	for _, n := range numbers {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("--%s %d; give %d to %d", n.flag, n.value, n.least, n.most)
		}
	}

	_, err := core.ParseRate(q.rate)
	switch {
	case q.callTimeout < time.Millisecond:
		return fmt.Errorf("--call-timeout %v; give at least 1ms", q.callTimeout)
	case q.rate != "" && err != nil:
		return fmt.Errorf("--rate: %w", err)
	case q.keep != 0 && (q.keep < core.MinKeepAge || q.keep > core.MaxKeepAge):
		return fmt.Errorf("--keep %v; give %v to %v", q.keep, core.MinKeepAge, core.MaxKeepAge)
	}
	return nil
}

// handler returns the handler of the queue, given the store's record of it.
func (q *workedQueue) handler(stored ports.Queue, lanes int, log *slog.Logger) (skein.Handler, *webhook.Caller, error) {
	o := webhook.Options{URL: q.url, MaxBusy: q.maxRetries, Lanes: lanes, Results: q.keep > 0, Logger: log}
	if q.secretFile != "" {
		text, err := os.ReadFile(q.secretFile)
		if err == nil {
			o.Secrets, err = webhook.ParseSecrets(string(text))
		}
		if err != nil {
			return skein.Handler{}, nil, fmt.Errorf("%w: --secret-file: %w", errUsage, err)
		}
	}
	caller, err := webhook.New(q.name, o)
	if err != nil {
		return skein.Handler{}, nil, err
	}

	options := skein.QueueOptions[[]byte]{
		Shards:      stored.Shards,
		IndexIDs:    stored.IndexIDs,
		Merge:       stored.Merge,
		Codec:       skein.RawCodec{},
		MaxLanes:    q.maxLanes,
		MaxRunning:  q.maxRunning,
		Keep:        skein.Keep{Age: q.keep},
		MaxPayloads: q.maxPayloads,
		MaxRetries:  q.maxRetries,
		Timeout:     q.callTimeout,
	}
	if q.maxRetries == 0 {
		options.MaxRetries = skein.NoRetries
	}
	if q.hold {
		options.Exhausted = skein.Hold
	}
	if q.rate != "" {
		options.Rate, _ = core.ParseRate(q.rate) // check has read it
	}
	return skein.NewQueue(q.name, options).JobHandler(caller.Handle), caller, nil
}

// working has the settings of a process that calls handlers, which its flags set.
type working struct {
	listen          string
	queuesFile      string
	lanes           int
	shutdownTimeout time.Duration
	queues          []*workedQueue
}

func (w *working) flags(f *pflag.FlagSet) {
	f.StringVar(&w.queuesFile, "queues-file", "",
		"run several queues: each line of this `FILE` is a queue, its URL and its flags, as on the command line")
	f.IntVar(&w.lanes, "lanes", skein.DefaultLanes, "the largest number of calls at once by this process")
	f.StringVar(&w.listen, "listen", "localhost:9181", "the `ADDRESS` to serve /livez, /readyz and /metrics at")
	f.DurationVar(&w.shutdownTimeout, "shutdown-timeout", skein.DefaultShutdownTimeout,
		"how long calls may go on after a signal; those that take longer are cut off and run again")
}

func (a *app) workCommand() *cobra.Command {
	var w working
	var own workedQueue
	ownFlags := own.flags()
	c := a.command(
		"work QUEUE URL",
		"Run a queue, and handle each of its jobs by a call of a URL",
		"skein work orders http://localhost:9000/orders --secret-file secrets",
		cobra.MaximumNArgs(2),
		nil,
	)

	c.Long = c.Short + ".\n\n" + workText
	w.flags(c.Flags())
	c.Flags().AddFlagSet(ownFlags)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.read(a, &own, ownFlags, args); err != nil {
			return usage(cmd, err)
		}
		i, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		return w.run(cmd.Context(), a, i)
	}
	return c
}

const workText = "The handler is a web server in any language. Each job is a POST with its id and its payloads\n" +
	"as JSON. The answer 2xx means done, 410 buries the job, 429 puts it off, and anything else is a failure,\n" +
	"which is retried. Run as many processes as you like: they share the queue. The shards and the merge rule\n" +
	"of a queue are those of the store. A queue that does not exist yet needs --shards. /livez, /readyz and\n" +
	"/metrics of --listen are for probes and Prometheus. docs/guide/work.md has the calls and a handler in\n" +
	"Python."

// read reads the queues from the arguments, or from the file.
func (w *working) read(a *app, own *workedQueue, ownFlags *pflag.FlagSet, args []string) error {
	given := ""
	ownFlags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			given = f.Name
		}
	})
	switch {
	case w.lanes < 1:
		return fmt.Errorf("--lanes %d; give at least 1", w.lanes)
	case w.shutdownTimeout <= 0:
		return fmt.Errorf("--shutdown-timeout %v; give more than 0", w.shutdownTimeout)
	case a.timeout > 0:
		return errors.New("--timeout would end this command; limit a call by --call-timeout")
	case w.queuesFile != "" && (len(args) > 0 || given != ""):
		return errors.New("--queues-file together with a queue or its flags; write them into a line of the file")
	case w.queuesFile != "":
		return w.readFile()
	case len(args) == 1 && isHTTP(a.url):
		return fmt.Errorf("--url names the store; write the handler's URL behind the queue, as in skein work %s URL",
			quoted(args[0]))
	case len(args) < 2:
		return errors.New("give a queue and the URL of its handler, or --queues-file")
	}

	own.name, own.url = args[0], args[1]
	w.queues = []*workedQueue{own}
	return own.check()
}

func isHTTP(url string) bool {
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}

// readFile reads the file of queues. Empty lines and those that begin with # are skipped.
func (w *working) readFile() error {
	text, err := os.ReadFile(w.queuesFile)
	if err != nil {
		return fmt.Errorf("--queues-file: %w", err)
	}

	known, number := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}

		q := new(workedQueue)
		flags := q.flags()
		flags.SetOutput(io.Discard)
		err := flags.Parse(fields)
		args := flags.Args()
		switch {
		case errors.Is(err, pflag.ErrHelp):
			err = errors.New("--help is no flag of a queue; remove it")
		case err != nil:
			err = plainFlag(err)
		case len(args) != 2:
			err = fmt.Errorf("%d words without the flags; write a queue, the URL of its handler, and flags", len(args))
		case known[args[0]]:
			err = fmt.Errorf("the queue %s occurs twice; remove one", quoted(args[0]))
		default:
			q.name, q.url = args[0], args[1]
			known[q.name] = true
			err = q.check()
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", w.queuesFile, number, err)
		}
		w.queues = append(w.queues, q)
	}

	if len(w.queues) == 0 {
		return fmt.Errorf("%s has no queue; write a queue, the URL of its handler, and flags into a line", w.queuesFile)
	}
	return nil
}

// run runs the queues until ctx ends and their calls have ended.
func (w *working) run(ctx context.Context, a *app, i *inspect.Inspector) error {
	log := a.log()
	var handlers []skein.Handler
	var names []string
	for _, q := range w.queues {
		stored, err := a.declared(ctx, &q.layout, q.name)
		if err != nil {
			return err
		}
		handler, caller, err := q.handler(stored, w.lanes, log)
		if err != nil {
			return err
		}
		defer caller.Close()
		handlers, names = append(handlers, handler), append(names, q.name)
	}

	counts, err := prometheus.New(prometheus.Options{Queues: names, Version: version()})
	if err != nil {
		return err
	}
	server := skein.NewServer(a.backend.Store, skein.ServerOptions{
		Lanes:           w.lanes,
		ShutdownTimeout: w.shutdownTimeout,
		Observer:        counts,
		Logger:          log,
		Version:         version(),
	}, handlers...)
	counts.Watch(server.Node)

	routes, err := probes(ctx, i, counts)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, w.listen)
	if err != nil {
		return err
	}
	return serveWith(ctx, log, listener, routes, server)
}

// serveWith runs a server, and serves HTTP until it has ended, so that probes see it stop.
func serveWith(
	ctx context.Context,
	log *slog.Logger,
	listener net.Listener,
	routes http.Handler,
	server *skein.Server,
) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	web, endWeb := context.WithCancel(context.WithoutCancel(ctx))
	defer endWeb()

	ended := make(chan error, 1)
	go func() {
		defer end() // without probes the process would be taken for dead
		ended <- serveAt(web, log, listener, routes)
	}()
	err := server.Run(ctx)
	endWeb()
	return errors.Join(err, <-ended)
}

// probes returns the routes of a process that runs a server. It is not ready once ctx has ended.
func probes(ctx context.Context, i *inspect.Inspector, counts prom.Collector) (http.Handler, error) {
	metrics, err := scraped(counts)
	if err != nil {
		return nil, err
	}

	ready := httpapi.Readyz(i, httpapi.HealthOptions{Server: true})
	mux := http.NewServeMux()
	mux.Handle("GET /livez", httpapi.Livez())
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		ready.ServeHTTP(w, r)
	})
	mux.Handle("GET /metrics", metrics)
	return mux, nil
}
