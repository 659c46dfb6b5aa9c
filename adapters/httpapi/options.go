package httpapi

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// Verb is the kind of a request's action.
type Verb string

// Kinds of actions. All except VerbView and VerbViewPayload change something.
const (
	// VerbView reads anything except payloads.
	VerbView Verb = "view"
	// VerbViewPayload reads payloads too.
	VerbViewPayload Verb = "view-payload"
	VerbPause       Verb = "pause"
	VerbResume      Verb = "resume"
	VerbSetMerge    Verb = "set-merge"
	// VerbConfigure changes the settings of a queue, such as the limits of what runs.
	VerbConfigure Verb = "configure"
	VerbForget    Verb = "forget"
	VerbRecount   Verb = "recount"
	VerbDiscard   Verb = "discard"
	VerbRunNow    Verb = "run-now"
	VerbRelease   Verb = "release"
	VerbBury      Verb = "bury"
	VerbDelete    Verb = "delete"
	VerbCancel    Verb = "cancel"
	// VerbMove moves jobs and dead letters from one queue to another. Authorize is called for both.
	// Afterwards clients that may see the payloads of the target see the moved ones too.
	VerbMove   Verb = "move"
	VerbRevive Verb = "revive"
	VerbPurge  Verb = "purge"
	VerbEdit   Verb = "edit"
	// VerbTrack starts or ends the tracking of ids.
	VerbTrack Verb = "track"
	VerbDrain Verb = "drain"
	// VerbStopRate stops the rate of a queue for a while, or resumes it.
	VerbStopRate Verb = "stop-rate"
	// VerbPauseSchedule pauses or resumes schedules.
	VerbPauseSchedule Verb = "pause-schedule"
	// VerbRunSchedule pushes the payloads of schedules, now or for past ticks.
	VerbRunSchedule Verb = "run-schedule"
	// VerbEditSchedule changes the payloads and the times of schedules.
	VerbEditSchedule Verb = "edit-schedule"
	// VerbPush pushes payloads. It is a right of programs, apart from those of people who look or act.
	VerbPush           Verb = "push"
	VerbRemoveSchedule Verb = "remove-schedule"
)

// Action is the action that a request asks for. Options.Authorize permits or refuses it.
type Action struct {
	Verb Verb
	// Queue is the name of the queue. It is empty for requests about all queues, and for those
	// without a queue.
	Queue string
	// IDs are the ids that the request names, as the client wrote them.
	IDs []string
	// Bulk is true if the request acts on all entries that match, instead of named ids. That
	// includes dry runs, which change nothing.
	Bulk bool
	// Node is the server to drain, by its owner or name.
	Node string
}

// ErrUnauthenticated reports a request without valid credentials, such as a name and a password of
// HTTP basic authentication, or a bearer token. Options.Authorize returns it, wrapped or not.
var ErrUnauthenticated = service.ErrUnauthenticated

// Challenge is the header WWW-Authenticate of a response to a request that Options.Authorize
// refused with [ErrUnauthenticated].
const Challenge = `Basic realm="skein", charset="UTF-8"`

// Options are the options of an [API]. The zero value serves only the same machine, without
// redaction.
type Options struct {
	// Authorize returns an error to refuse a request. The text of the error is not shown.
	// [ErrUnauthenticated] is answered with 401, which makes a browser ask for a name and a
	// password. Any other error is answered with 403. Authorize is called for every route, after
	// the request was found well-formed, and twice for a move: for each of the two queues. It must
	// decide by the Action: the dashboard's pages call it with the browser's request, whose method
	// and path are the page's. The Action of a page for all queues has no Queue. With nil the API
	// serves only requests from a loopback address that no proxy has forwarded. It must be safe for
	// concurrent use.
	Authorize func(*http.Request, Action) error
	// Actor returns the name of the user who makes a request, for the audit and for the log line of
	// each action. The address of the request is added. With nil only the address is kept. Actor
	// must be safe for concurrent use.
	Actor func(*http.Request) string
	// ReadOnly leaves out every route that changes something.
	ReadOnly bool

	// TrustedOrigins are origins, such as https://ops.example.com, whose pages may act. They are
	// for proxies that rewrite Host: a browser's request from the API's own site then looks like
	// one from another site.
	TrustedOrigins []string
	// Hosts are the host names, without port, that the API responds to, against DNS rebinding.
	// Empty means any name with Authorize, and localhost, 127.0.0.1 and ::1 without it.
	Hosts []string

	// RedactPayload returns the bytes to show of a payload, or of a record that was set aside. data
	// is a copy that it may overwrite. If it is set, no Meta is shown. nil shows everything. All
	// hooks must be safe for concurrent use.
	RedactPayload func(queue, id string, data []byte) []byte
	// RedactError returns the text to show of an error of a job, or of the store; for the latter
	// queue and id may be empty. nil shows everything.
	RedactError func(queue, id, text string) string
	// RedactID returns the text to show of an id. A client that knows an id can still ask for it.
	// If it is set, no tags are shown, since tags may name what ids name. A client that knows a tag
	// can still list its entries. nil shows ids and tags.
	RedactID func(queue, id string) string
	// CursorKey encrypts cursors, checkpoints and keys if RedactID or RedactError is set, because
	// they contain ids and names of groups. It also encrypts the names of groups if RedactError is
	// set. It has 32 bytes. All processes that continue one another's lists and actions must have
	// the same key. nil means a random key, drawn by [New].
	CursorKey []byte

	// MaxBodyBytes is the maximum size of a request's body; 0 means 1 MiB. MaxHeaderBytes is the
	// maximum size of its headers with the URL; 0 means 32 KiB.
	MaxBodyBytes   int64
	MaxHeaderBytes int
	// MaxPayloadBytes is the maximum size of a payload that is pushed, in its canonical form if it is
	// JSON; 0 means 512 KiB.
	MaxPayloadBytes int
}

// API is an [http.Handler] for the paths below /api/v1. Make it with [New]. It is safe for
// concurrent use.
type API struct {
	service  *service.Service
	o        Options
	hosts    map[string]bool
	origins  http.CrossOriginProtection
	routes   []route
	mux      *http.ServeMux
	document json.RawMessage
}

// New returns the API of an inspector. It doesn't contact the store.
//
// It returns [inspect.ErrInvalidOptions] for an invalid origin, a host with a port or path, a key
// with a length other than 32 bytes, a negative limit, or a nil inspector.
func New(inspector *inspect.Inspector, o Options) (*API, error) {
	if inspector == nil {
		return nil, invalidOption("no inspector; make one with inspect.New")
	}
	if o.MaxBodyBytes < 0 || o.MaxHeaderBytes < 0 || o.MaxPayloadBytes < 0 {
		return nil, invalidOption("MaxBodyBytes %d, MaxHeaderBytes %d, MaxPayloadBytes %d; none may be negative",
			o.MaxBodyBytes, o.MaxHeaderBytes, o.MaxPayloadBytes)
	}

	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 1 << 20
	}
	if o.MaxHeaderBytes == 0 {
		o.MaxHeaderBytes = 32 << 10
	}

	a := &API{o: o}
	for _, origin := range o.TrustedOrigins {
		if err := a.origins.AddTrustedOrigin(origin); err != nil {
			return nil, invalidOption("TrustedOrigins: %v; write each as https://host or https://host:port", err)
		}
	}
	if err := a.allowHosts(); err != nil {
		return nil, err
	}

	var err error
	a.service, err = service.New(inspector, service.Options{
		RedactPayload:   o.RedactPayload,
		RedactError:     o.RedactError,
		RedactID:        o.RedactID,
		CursorKey:       o.CursorKey,
		ReadOnly:        o.ReadOnly,
		MaxPayloadBytes: o.MaxPayloadBytes,
	})
	if err != nil {
		return nil, invalidOption("%v", err)
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
			return invalidOption("Hosts: %q; write a name or an address without port or path", host)
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
