package httpapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/skeinq/skein/inspect"
)

// Verb is what a request does.
type Verb string

// What requests do. All but the first two change something.
const (
	// VerbView looks at anything but payloads.
	VerbView Verb = "view"
	// VerbViewPayload looks at payloads too.
	VerbViewPayload Verb = "view-payload"
	VerbPause       Verb = "pause"
	VerbResume      Verb = "resume"
	VerbForget      Verb = "forget"
	VerbRecount     Verb = "recount"
	VerbDiscard     Verb = "discard"
	VerbRunNow      Verb = "run-now"
	VerbBury        Verb = "bury"
	VerbDelete      Verb = "delete"
	VerbCancel      Verb = "cancel"
	VerbRevive      Verb = "revive"
	VerbPurge       Verb = "purge"
	VerbEdit        Verb = "edit"
	VerbDrain       Verb = "drain"
)

// Action is what a request asks for, as Options.Authorize is asked.
type Action struct {
	Verb Verb
	// Queue is the queue that it is about; empty is all of them, or none.
	Queue string
	// IDs are those that it names, as the client wrote them.
	IDs []string
	// Bulk reports that it acts on all that match, not on named ids. A dry run, which changes nothing, is
	// one too.
	Bulk bool
	// Node is the server that is drained, by its owner or name.
	Node string
}

// ErrUnauthenticated is what Options.Authorize returns, wrapped or not, for a request without valid credentials of HTTP basic
// authentication.
var ErrUnauthenticated = errors.New("not authenticated")

// Challenge is the header WWW-Authenticate of an answer to such a request.
const Challenge = `Basic realm="skein", charset="UTF-8"`

// Options are the options of an [API]. The zero value serves the same machine alone, without redaction.
type Options struct {
	// Authorize refuses a request by an error, whose text is not shown: with [ErrUnauthenticated] it is answered 401, which makes a browser
	// ask for a name and a password, and with any other 403. It is called for every route, after
	// the request is known to be well-formed. With nil only requests of a loopback address that no
	// proxy has forwarded are served. It must be safe for concurrent use.
	Authorize func(*http.Request, Action) error
	// Actor returns who makes a request, for the log line of each action that the inspector writes; the address
	// is added. nil logs the address alone.
	Actor func(*http.Request) string
	// ReadOnly leaves out every route that changes something.
	ReadOnly bool

	// TrustedOrigins are origins, such as https://ops.example.com, whose pages may act. It is for proxies that
	// rewrite Host, where a browser's own page looks like another site's.
	TrustedOrigins []string
	// Hosts are the names, without port, that requests may be addressed to, against DNS rebinding. Empty is any
	// name with Authorize, and localhost, 127.0.0.1 and ::1 without it.
	Hosts []string

	// RedactPayload returns what is shown of a payload, and of a record that was set aside. It may
	// write to data, which is a copy. nil shows all. All hooks must be safe for concurrent use.
	RedactPayload func(queue, id string, data []byte) []byte
	// RedactError returns what is shown of an error text of a job, or of the store, where queue and id may be
	// empty. nil shows all.
	RedactError func(queue, id, text string) string
	// RedactID returns what is shown of an id. Who knows an id may still ask for it. nil shows ids.
	RedactID func(queue, id string) string
	// CursorKey encrypts cursors, checkpoints and keys, which have ids and names of groups in them,
	// if RedactID or RedactError is set, and the names of groups themselves if RedactError is set.
	// It has 32 bytes, and must be the same in each process that continues what another has begun.
	// nil is drawn by [New].
	CursorKey []byte

	// MaxBodyBytes bounds a request's body; 0 is 1 MiB. MaxHeaderBytes bounds its headers with the URL; 0 is
	// 32 KiB.
	MaxBodyBytes   int64
	MaxHeaderBytes int
}

// API is an [http.Handler] of the paths below /api/v1. Make it with [New]. It is safe for concurrent use.
type API struct {
	inspector *inspect.Inspector
	o         Options
	hosts     map[string]bool
	origins   http.CrossOriginProtection
	routes    []route
	mux       *http.ServeMux
	document  []byte
	// bulk bounds how many actions on all that match are under way.
	bulk      chan struct{}
	snapshots snapshots
	// sealer encrypts the ids and texts in cursors and groups that clients may not read. It is nil if
	// they may read all.
	sealer *sealer
}

// New returns the API of an inspector. It does not contact the store.
//
// Errors: [inspect.ErrInvalidOptions] for an origin that is none, a host with a port or path, a key that has
// not 32 bytes, a negative limit, or no inspector.
func New(inspector *inspect.Inspector, o Options) (*API, error) {
	if inspector == nil {
		return nil, invalidOption("no inspector; give one of inspect.New")
	}
	if o.MaxBodyBytes < 0 || o.MaxHeaderBytes < 0 {
		return nil, invalidOption("MaxBodyBytes %d, MaxHeaderBytes %d; neither is negative", o.MaxBodyBytes, o.MaxHeaderBytes)
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 1 << 20
	}
	if o.MaxHeaderBytes == 0 {
		o.MaxHeaderBytes = 32 << 10
	}
	a := &API{inspector: inspector, o: o, bulk: make(chan struct{}, maxBulk)}
	for _, origin := range o.TrustedOrigins {
		if err := a.origins.AddTrustedOrigin(origin); err != nil {
			return nil, invalidOption("TrustedOrigins: %v; write it as https://host or https://host:port", err)
		}
	}
	if err := a.allowHosts(); err != nil {
		return nil, err
	}
	if err := a.seal(); err != nil {
		return nil, err
	}
	a.register()
	return a, nil
}

func (a *API) allowHosts() error {
	hosts := a.o.Hosts
	if len(hosts) == 0 && a.o.Authorize == nil {
		hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	for _, host := range hosts {
		name := hostName(host)
		if name == "" || strings.ContainsAny(host, "/ ") || name != strings.ToLower(strings.Trim(host, "[]")) {
			return invalidOption("Hosts: %q; write names or addresses alone, without port or path", host)
		}
		if a.hosts == nil {
			a.hosts = make(map[string]bool)
		}
		a.hosts[name] = true
	}
	return nil
}

// hostName returns the name in a Host header, without port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: httpapi: "+format, append([]any{inspect.ErrInvalidOptions}, args...)...)
}
