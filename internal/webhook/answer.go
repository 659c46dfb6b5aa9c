package webhook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein"
)

// Bounds of an answer.
const (
	maxHeaderBytes = 64 << 10
	maxBodyBytes   = 64 << 10
	// maxReasonBytes is how much of a body becomes a part of an error.
	maxReasonBytes = 2 << 10
)

// Bounds of the time for which a busy answer puts its job off.
const (
	minBusy = time.Second
	maxBusy = 24 * time.Hour
)

// answer is a response whose body was read: to its end, or to maxBodyBytes.
type answer struct {
	status     int
	retryAfter string
	json       bool
	body       []byte
	// whole is false if the body is longer than maxBodyBytes.
	whole bool
}

// readAnswer reads a response. An answer whose body breaks off is an error, whatever its status: a
// receiver that sends its status before it works may have died since.
func readAnswer(r *http.Response) (*answer, error) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("the answer %s broke off: %w", status(r.StatusCode), err)
	}

	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return &answer{
		status:     r.StatusCode,
		retryAfter: r.Header.Get("Retry-After"),
		json:       media == "application/json",
		body:       text[:min(len(text), maxBodyBytes)],
		whole:      len(text) <= maxBodyBytes,
	}, nil
}

// done reports whether the answer ends the job as done.
func (a *answer) done() bool { return a.status >= 200 && a.status <= 299 }

// busy reports whether the receiver asks for another call later, and when: d is 0 if it doesn't say.
func (a *answer) busy(now time.Time) (d time.Duration, ok bool) {
	d, given := retryAfter(a.retryAfter, now)
	return d, a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable && given
}

// retryAfter reads the header Retry-After: seconds, or an HTTP date.
func retryAfter(text string, now time.Time) (d time.Duration, ok bool) {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		d = time.Duration(min(seconds, uint64(maxBusy/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	} else {
		return 0, false
	}
	return min(max(d, minBusy), maxBusy), true
}

// failure returns the error of an answer that does not end the job as done.
func (a *answer) failure() error {
	answered := "the handler answered " + status(a.status)
	reason := strings.TrimSpace(strings.ToValidUTF8(string(a.body[:min(len(a.body), maxReasonBytes)]), ""))
	switch {
	case a.status == http.StatusGone:
		return skein.Bury(errors.New(cmp.Or(reason, answered)))
	case a.status >= 300 && a.status <= 399:
		return errors.New(answered + "\nredirects are not followed: give the URL that handles")
	case reason != "":
		return errors.New(answered + "\n" + reason)
	}
	return errors.New(answered)
}

// result returns the result in an answer that is JSON, or nil if it has none.
func (a *answer) result() (json.RawMessage, error) {
	switch {
	case !a.json || len(a.body) == 0:
		return nil, nil
	case !a.whole:
		return nil, fmt.Errorf("it has more than %d bytes", maxBodyBytes)
	case !json.Valid(a.body):
		return nil, errors.New("it is not JSON, though its Content-Type is")
	}
	return a.body, nil
}

// status returns a status with its name.
func status(code int) string { return strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code))) }
