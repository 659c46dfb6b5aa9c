package broken

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/skeinq/skein/conformance/internal/cases"
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/conformance/internal/racing"
)

// recorder is the testing.TB of a case that is expected to fail: it keeps the case's failures from
// the test around it.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	reports []string
}

// record runs a case against a store and returns its failures.
func record(t testing.TB, c env.Case, f env.Factory) []string {
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.RunColdAndWarm(r, f)
	}()
	<-ended
	return r.reports
}

func (r *recorder) report(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, text)
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.report(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.report(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// caseNamed returns the case with the given name, which begins with its group and a slash.
func caseNamed(t *testing.T, name string) env.Case {
	t.Helper()
	subject, rest, _ := strings.Cut(name, "/")
	store := env.Probe(t, memoryStore)
	for _, g := range append(cases.Groups(store), env.Group{Name: "racing", Cases: racing.Cases(store)}) {
		for _, c := range g.Cases {
			if g.Name == subject && c.Name == rest {
				return c
			}
		}
	}
	t.Fatalf("the suite has no case %q", name)
	return env.Case{}
}
