package dashboard

import (
	"errors"
	"time"

	"github.com/skeinq/skein/internal/service"
)

// problem is an error in the form for a page.
type problem struct {
	service.Problem
	// Back is the page to go back to, if there is one. Again is the page's own address, if the store
	// did not answer.
	Back, Again string
}

func newProblem(status int, title, detail string) *problem {
	return &problem{Problem: service.Problem{Status: status, Title: title, Detail: detail}}
}

// problemOf returns the problem of an error. It is nil for an error that is neither a page's nor
// the service's.
func problemOf(err error) *problem {
	var own *problem
	if errors.As(err, &own) {
		return own
	}
	if of := new(service.Problem); errors.As(err, &of) {
		return &problem{Problem: *of}
	}
	return nil
}

// leadingBack adds a link to an error that a page shows. It returns any other error unchanged.
func leadingBack(err error, to string) error {
	p := problemOf(err)
	if p == nil {
		return err
	}
	copied := *p
	copied.Back = to
	return &copied
}

// asked returns the reply of an operation of the service, on a queue or on what its input names.
func asked[I, R any](c *call, o service.Op[I, R], queue string, in *I) (*R, error) {
	began := time.Now()
	defer func() { c.cost += time.Since(began) }()
	return o.Do(c.r.Context(), c.who, queue, in)
}
