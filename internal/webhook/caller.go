package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/logs"
)

// idleTime is how long a connection may be unused. It is shorter than the time after which usual
// servers close one: a request on a connection that is being closed would fail.
const idleTime = time.Second

// Options are the options of a [Caller].
type Options struct {
	// URL is what is called, http or https. It is the operator's: no payload changes it.
	URL string
	// Secrets sign the requests. None means that they are not signed.
	Secrets []Secret
	// MaxBusy is the number of busy answers in a row, of one id, that snooze the job. One more is a
	// failure. 0 means that the first is.
	MaxBusy int
	// Lanes is the number of calls at once, for whose connections there is room.
	Lanes int
	// Results is true if the queue keeps records, whose results are the bodies of answers that are
	// JSON.
	Results bool
	// Logger receives the messages that docs/reference/log.md lists. Default [slog.Default].
	Logger *slog.Logger
}

// Caller handles the jobs of a queue by calls of a URL. Make it with [New]. It is safe for
// concurrent use.
type Caller struct {
	queue     string
	o         Options
	transport *http.Transport
	client    http.Client
	busy      busyCounts
	dropped   *logs.Once
}

// New returns a Caller. It contacts nobody. Its error is core.ErrInvalidOptions for a URL that can't
// be called; it does not contain the URL, which may have a password.
func New(queue string, o Options) (*Caller, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the handler's URL can't be read; write it as http://localhost:9000/orders",
			core.ErrInvalidOptions)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: the handler's URL begins with %q; use http:// or https://",
			core.ErrInvalidOptions, u.Scheme+":")
	case u.Hostname() == "":
		return nil, fmt.Errorf("%w: the handler's URL has no host; write it as http://localhost:9000/orders",
			core.ErrInvalidOptions)
	}

	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		MaxIdleConns:           o.Lanes,
		MaxIdleConnsPerHost:    o.Lanes,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // so that the bound of a body is that of its bytes
		ForceAttemptHTTP2:      true,
	}
	o.Logger = logs.New(o.Logger)

	return &Caller{
		queue:     queue,
		o:         o,
		transport: transport,
		client:    http.Client{Transport: transport, CheckRedirect: dontRedirect},
		dropped:   logs.NewOnce(time.Minute, 1),
	}, nil
}

func dontRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes the connections that are not in use.
func (c *Caller) Close() { c.transport.CloseIdleConnections() }

// Handle calls the URL for a job and returns the outcome that the answer stands for: done for a
// status of 2xx, a snooze for 429 and for 503 with Retry-After, a burial for 410, and a failure for
// everything else. When ctx ends, the call is cut off and the error wraps the cause.
func (c *Caller) Handle(ctx context.Context, job *skein.Job[[]byte]) error {
	a, err := c.call(ctx, job)
	if err != nil {
		c.busy.end(job.ID)
		return err
	}

	if d, busy := a.busy(time.Now()); busy {
		return c.snooze(job.ID, d, a)
	}
	c.busy.end(job.ID)
	if !a.done() {
		return a.failure()
	}
	if c.o.Results {
		c.setResult(job, a)
	}
	return nil
}

// call sends the request of a job and reads the answer.
func (c *Caller) call(ctx context.Context, job *skein.Job[[]byte]) (*answer, error) {
	text, err := body(ctx, c.queue, job)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.URL, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", withoutURL(err))
	}
	c.setHeader(r, text)

	response, err := c.client.Do(r)
	if err != nil {
		return nil, c.unanswered(ctx, fmt.Errorf("no answer: %w", withoutURL(err)))
	}
	defer response.Body.Close() // which drops the connection unless the body was read to its end
	a, err := readAnswer(response)
	if err != nil {
		return nil, c.unanswered(ctx, err)
	}
	return a, nil
}

// setHeader sets the headers of a request. Each call has an id of its own, also the next one of the
// same job, since its payloads may differ. So a receiver that sees an id twice sees a replay.
func (c *Caller) setHeader(r *http.Request, body []byte) {
	h := r.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "skein")
	if len(c.o.Secrets) == 0 {
		return
	}

	id, now := "msg_"+rand.Text(), time.Now()
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	h.Set("Webhook-Signature", signature(c.o.Secrets, id, now, body))
}

// unanswered returns the error of a call without a whole answer. If the end of ctx was its reason,
// the error wraps the cause, by which the engine decides.
func (c *Caller) unanswered(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("no whole answer until the call was cut off: %w", context.Cause(ctx))
}

// withoutURL returns the reason of an error of the client, without the URL: that may have a secret.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// snooze returns the outcome of a busy answer.
func (c *Caller) snooze(id string, d time.Duration, a *answer) error {
	inRow, ok := c.busy.add(id, c.o.MaxBusy)
	switch {
	case !ok:
		return fmt.Errorf("busy %d times in a row: %w", inRow, a.failure())
	case d == 0:
		d = min(skein.DefaultBackoff(inRow-1), maxBusy)
	}
	return skein.Snooze(d)
}

// setResult makes the body of an answer the result of its job. A body that can't be is dropped,
// since the job is done.
func (c *Caller) setResult(job *skein.Job[[]byte], a *answer) {
	result, err := a.result()
	if err == nil && result != nil {
		err = job.SetResult(result)
	}
	if err != nil && c.dropped.Pass(time.Now(), "") {
		c.o.Logger.Warn("the answer of a handler is no result and was dropped, but its job is done",
			"queue", c.queue, "id", job.ID, "error", err)
	}
}
