package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Pages are a client of the API, in the process: what they show and do has passed its rights, its
// redaction and its bounds.

// problem is an answer of the API that says what went wrong.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Result is what an action had done before it failed.
	Result *result `json:"result"`
	// Back is the page to go back to, if there is one.
	Back string `json:"-"`
}

// Error implements error.
func (p *problem) Error() string { return p.Title + ": " + p.Detail }

// is reports whether it is the problem of a name.
func (p *problem) is(name string) bool { return p.Type == "urn:skein:problem:"+name }

// answer is a response that is kept.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(data []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(data)
}

// asked returns the answer of a handler.
func asked(h http.Handler, r *http.Request) *answer {
	a := &answer{header: http.Header{}}
	h.ServeHTTP(a, r)
	return a
}

// problem returns what an answer says went wrong, nil if nothing did.
func (a *answer) problem() *problem {
	if a.status < http.StatusBadRequest {
		return nil
	}
	p := &problem{}
	if err := json.Unmarshal(a.body.Bytes(), p); err != nil || p.Status == 0 {
		return &problem{Status: a.status, Title: http.StatusText(a.status)}
	}
	return p
}

// refusal returns why the door refuses a request, nil if it doesn't.
func refusal(door http.Handler, r *http.Request) *problem { return asked(door, r).problem() }

// ask makes a request of the API in the name of a page's request: with its headers, address and
// context. The body, if there is one, is sent as JSON.
func (c *call) ask(method, path string, query url.Values, body, reply any) error {
	r := c.r.Clone(c.r.Context())
	r.Method, r.Pattern = method, ""
	r.URL = &url.URL{Path: "/api/v1" + path, RawQuery: query.Encode()}
	r.RequestURI = r.URL.RequestURI()
	for _, name := range []string{"Accept", "If-None-Match", "Content-Type", "Content-Length", "Content-Encoding"} {
		r.Header.Del(name)
	}
	if r.Header.Del("Skein-Reason"); method == http.MethodPost {
		r.Header.Set("Skein-Reason", strings.Join(strings.Fields(c.r.PostForm.Get("reason")), " "))
	}
	r.Form, r.PostForm, r.MultipartForm = nil, nil, nil
	r.Body, r.ContentLength = http.NoBody, 0
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("ask for %s: %w", path, err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	}
	began := time.Now()
	a := asked(c.api, r)
	c.cost += time.Since(began)
	if p := a.problem(); p != nil {
		return p
	}
	if err := json.Unmarshal(a.body.Bytes(), reply); err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}

// get reads a reply of the API about a queue; without one the path is as it is.
func (c *call) get(queue, path string, query url.Values, reply any) error {
	return c.ask(http.MethodGet, queuePath(queue, path), query, nil, reply)
}

// post acts by the API.
func (c *call) post(queue, path string, body, reply any) error {
	return c.ask(http.MethodPost, queuePath(queue, path), nil, body, reply)
}

// queuePath is the API's path of something of a queue. Names that were checked need no escaping.
func queuePath(queue, path string) string {
	if queue == "" {
		return path
	}
	return "/queues/" + queue + path
}
