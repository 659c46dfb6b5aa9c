package dashboard

import (
	"bytes"
	"time"
)

// silence is a store that does not answer now.
type silence struct {
	// Since is when it answered last, which is the time of the figures that pages still show. If it
	// never has answered, Since is when it was first asked in vain.
	Since when
	// Never is true if it has never answered.
	Never bool
	// Error is empty for a user who may not see all queues, since it may name one.
	Error string
	// Next is when the store is asked again, if a page asks for it.
	Next when
	// Again is the page's address, which asks at once.
	Again string
}

// age returns the time of the newest figures, by the store's clock, and the silence of the store if
// it did not answer the last look.
func (l *looker) age() (asOf time.Time, s *silence) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return now, nil
	}

	clock := l.clock()
	since := l.last.answered
	if since.IsZero() {
		since = l.last.silent
	}

	asOf = now.Add(since.Sub(clock))
	if l.last.failed == nil {
		return asOf, nil
	}

	return asOf, &silence{
		Since: when{asOf, now},
		Never: l.last.answered.IsZero(),
		Error: l.last.view.Silence,
		Next:  when{now.Add(l.next.Sub(clock)), now},
	}
}

// retry makes the next page ask a store that did not answer the last look.
func (l *looker) retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && l.last.failed != nil {
		l.stale = true
	}
}

// doubt makes the next page ask a store whose last look has an answer: a page that has read more got
// none.
func (l *looker) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && l.last.failed == nil && l.clock().Sub(l.last.at) >= minRest {
		l.stale = true
	}
}

// asOfHeader has the time of a page's figures, also where the page itself is not sent again.
const asOfHeader = "Skein-As-Of"

// withoutActions returns a page whose actions are off, since the store would not answer them.
func withoutActions(page []byte) []byte {
	return bytes.ReplaceAll(page, []byte(`<form method="post"`), []byte(`<form inert method="post"`))
}
