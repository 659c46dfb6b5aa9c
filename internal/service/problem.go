package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/skeinq/skein/inspect"
)

// Problem is an answer that reports an error in the form of RFC 9457.
type Problem struct {
	Type   string `json:"type" doc:"the problem for programs: urn:skein:problem: and a name of the table of problems"`
	Title  string `json:"title" doc:"the problem for people"`
	Status int    `json:"status" doc:"the status of the answer"`
	Detail string `json:"detail,omitempty" doc:"what is wrong with this request, and what to do"`
	// Result is the progress of a bulk action before it failed.
	Result *BulkReply `json:"result,omitempty" doc:"the progress of a bulk action, and where to continue"`
	// Settings are the present settings, if a change of settings was refused because somebody else has
	// changed them.
	Settings *SetSettings `json:"settings,omitempty" doc:"the present settings of the queue, if somebody else has changed them"`
	// Entries are the indexes of the entries of a push that the problem is about.
	Entries []int `json:"entries,omitempty" doc:"the indexes, from 0, of the entries of a push that are refused, or that are not known to be stored"`

	// Name is the end of Type.
	Name string `json:"-"`
	// Is is the error that the problem reports; nil means none.
	Is error `json:"-"`
	// Retry is the time after which the client should try again; 0 means not at all.
	Retry time.Duration `json:"-"`
}

func newProblem(status int, name, title string, is error, retry time.Duration) *Problem {
	return &Problem{
		Type:   "urn:skein:problem:" + name,
		Title:  title,
		Status: status,
		Name:   name,
		Is:     is,
		Retry:  retry,
	}
}

// The problems of requests, and one for each error that a caller can act on.
var (
	ProblemForeignHost = newProblem(http.StatusMisdirectedRequest, "foreign-host",
		"this host name is not served", nil, 0)
	ProblemCrossOrigin = newProblem(http.StatusForbidden, "cross-origin",
		"the request comes from another site", nil, 0)
	ProblemClosed = newProblem(http.StatusForbidden, "closed",
		"only requests from this machine are served", nil, 0)
	problemForbidden = newProblem(http.StatusForbidden, "forbidden",
		"not allowed", nil, 0)
	problemUnauthenticated = newProblem(http.StatusUnauthorized, "unauthenticated",
		"the name, the password or the token is missing or wrong", nil, 0)
	ProblemHeaderTooLarge = newProblem(http.StatusRequestHeaderFieldsTooLarge, "header-too-large",
		"URL and headers are too large", nil, 0)
	ProblemBodyTooLarge = newProblem(http.StatusRequestEntityTooLarge, "body-too-large",
		"the body is too large", nil, 0)
	ProblemMediaType = newProblem(http.StatusUnsupportedMediaType, "unsupported-media-type",
		"the body is not JSON", nil, 0)
	ProblemNotAcceptable = newProblem(http.StatusNotAcceptable, "not-acceptable",
		"no accepted format is available", nil, 0)
	ProblemNotFound = newProblem(http.StatusNotFound, "not-found",
		"no such route", nil, 0)
	ProblemMethod = newProblem(http.StatusMethodNotAllowed, "method-not-allowed",
		"the route has no such method", nil, 0)
	ProblemBadRequest = newProblem(http.StatusBadRequest, "bad-request",
		"the request can't be read", nil, 0)
	ProblemNotJSON = newProblem(http.StatusBadRequest, "not-json",
		"the new payload is not JSON, and the old one is", nil, 0)
	problemEntry = newProblem(http.StatusBadRequest, "invalid-entry",
		"an entry can't be pushed", nil, 0)
	problemBusy = newProblem(http.StatusTooManyRequests, "busy",
		"too many bulk actions are running", nil, time.Second)

	Problems = []*Problem{
		ProblemForeignHost,
		ProblemCrossOrigin,
		ProblemClosed,
		problemForbidden,
		problemUnauthenticated,
		ProblemHeaderTooLarge,
		ProblemBodyTooLarge,
		ProblemMediaType,
		ProblemNotAcceptable,
		ProblemNotFound,
		ProblemMethod,
		ProblemBadRequest,
		ProblemNotJSON,
		problemEntry,
		problemBusy,
		newProblem(http.StatusNotFound, "unknown-queue",
			"no such queue", inspect.ErrUnknownQueue, 0),
		newProblem(http.StatusNotFound, "unknown-node",
			"no such server", inspect.ErrUnknownNode, 0),
		newProblem(http.StatusNotFound, "unknown-schedule",
			"no such schedule", inspect.ErrUnknownSchedule, 0),
		newProblem(http.StatusConflict, "schedule-changed",
			"others change the schedule", inspect.ErrScheduleChanged, 0),
		newProblem(http.StatusConflict, "schedule-exists",
			"the target has other schedules", inspect.ErrScheduleExists, 0),
		newProblem(http.StatusBadRequest, "invalid-schedule",
			"no schedule can be so", inspect.ErrInvalidSchedule, 0),
		newProblem(http.StatusBadRequest, "invalid-id",
			"invalid id", inspect.ErrInvalidID, 0),
		newProblem(http.StatusBadRequest, "invalid-cursor",
			"invalid cursor", inspect.ErrInvalidCursor, 0),
		newProblem(http.StatusBadRequest, "invalid-checkpoint",
			"this action can't continue from there", inspect.ErrInvalidCheckpoint, 0),
		newProblem(http.StatusConflict, "settings-changed",
			"somebody else has changed the settings", inspect.ErrSettingsConflict, 0),
		newProblem(http.StatusBadRequest, "invalid-setting",
			"no setting has this name, or it does not accept this value", inspect.ErrInvalidSetting, 0),
		newProblem(http.StatusConflict, "queue-mismatch",
			"the queue has no index of ids, or can't have this merge rule", inspect.ErrQueueMismatch, 0),
		newProblem(http.StatusConflict, "not-empty",
			"the queue is not empty", inspect.ErrNotEmpty, 0),
		newProblem(http.StatusConflict, "not-paused",
			"the queue to move to is not paused", inspect.ErrNotPaused, 0),
		newProblem(http.StatusConflict, "too-many-tracked",
			"the queue has too many tracked ids", inspect.ErrTooManyTracked, 0),
		newProblem(http.StatusConflict, "lease-held",
			"a server runs the queue", inspect.ErrLeaseHeld, 0),
		newProblem(http.StatusInsufficientStorage, "store-full",
			"the store has no room", inspect.ErrFull, 0),
		newProblem(http.StatusServiceUnavailable, "store-unusable",
			"the store can't be used with its present settings, rights or format", inspect.ErrUnusable, 0),
		newProblem(http.StatusBadRequest, "invalid-options",
			"a value is invalid, or does not go with another one", inspect.ErrInvalidOptions, 0),
		newProblem(http.StatusBadRequest, "invalid-request",
			"the request is invalid", inspect.ErrInvalidRequest, 0),
		problemTimeout,
		problemStore,
	}
	problemTimeout = newProblem(http.StatusServiceUnavailable, "timeout",
		"the store took too long", context.DeadlineExceeded, time.Second)
	problemStore = newProblem(http.StatusServiceUnavailable, "store",
		"the store fails", nil, time.Second)
)

// With returns the problem with a detail.
func (p *Problem) With(format string, args ...any) *Problem {
	detailed := *p
	detailed.Detail = fmt.Sprintf(format, args...)
	return &detailed
}

// about returns the problem with the entries of a push that it is about.
func (p *Problem) about(entries ...int) *Problem {
	named := *p
	named.Entries = entries
	return &named
}

// Error implements error, so that decoders and routes may return a problem.
func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// silent reports whether the store, or the requested part of it, did not answer.
func (p *Problem) silent() bool { return p.Name == problemStore.Name || p.Name == problemTimeout.Name }

// ProblemOf returns the problem of an error: the first one whose sentinel it matches, or else that
// of the store.
func (s *Service) ProblemOf(queue string, err error) *Problem {
	var own *Problem
	if errors.As(err, &own) {
		return own
	}

	detail := s.ErrorText(queue, "", err.Error())
	for _, p := range Problems {
		if errors.Is(err, p.Is) {
			return p.With("%s", detail).withSettings(err)
		}
	}
	return problemStore.With("%s", detail)
}
