package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/skeinq/skein/inspect"
)

// Mount is a dashboard of [Stores], with its name.
type Mount struct {
	// Name is the path below which the dashboard's pages are, and the name of the store in the
	// picker. It has up to 64 letters, digits, hyphens, dots and underscores, and begins with a
	// letter or a digit.
	Name string
	// Dashboard is the dashboard of the store.
	Dashboard *Dashboard
}

// Stores is an [http.Handler] of several dashboards at one address, each below its name. The bar of
// each page has a picker of the other stores. The address itself redirects to the first store whose
// overview the user may see. Make it with [NewStores]. It is safe for concurrent use.
//
// Each dashboard keeps its own options. A user who may not see a store's overview does not find
// that store in the picker, and is refused there as without Stores. No page sums up several stores.
type Stores struct{ mounts []Mount }

var mountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// NewStores returns a handler of dashboards. The picker shows them in the given order.
//
// It returns [inspect.ErrInvalidOptions] for an empty list, a nil dashboard, an invalid name, and a
// name that occurs twice.
func NewStores(mounts ...Mount) (*Stores, error) {
	invalid := func(format string, args ...any) (*Stores, error) {
		return nil, fmt.Errorf("%w: dashboard: "+format, append([]any{inspect.ErrInvalidOptions}, args...)...)
	}
	if len(mounts) == 0 {
		return invalid("no stores; pass a Mount for each")
	}

	s := &Stores{}
	for _, m := range mounts {
		switch {
		case !mountName.MatchString(m.Name):
			return invalid("invalid name of a store: %q; use up to 64 letters, digits, hyphens, dots and underscores, "+
				"and begin with a letter or a digit", m.Name)
		case m.Dashboard == nil:
			return invalid("the store %q has no Dashboard; make it with New", m.Name)
		case s.named(m.Name) != nil:
			return invalid("two stores are called %q; rename one", m.Name)
		}
		s.mounts = append(s.mounts, m)
	}
	return s, nil
}

func (s *Stores) named(name string) *Mount {
	for at := range s.mounts {
		if s.mounts[at].Name == name {
			return &s.mounts[at]
		}
	}
	return nil
}

// ServeHTTP implements [http.Handler].
func (s *Stores) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if m := s.named(name); m != nil {
		prefix := r.URL.Path[:strings.Index(r.URL.Path, name)] + name
		r = r.WithContext(context.WithValue(r.Context(), pickerKey{}, &picker{s, m}))
		http.StripPrefix(prefix, m.Dashboard).ServeHTTP(w, r)
		return
	}

	for name, value := range security {
		w.Header().Set(name, value)
	}

	if strings.TrimPrefix(r.URL.Path, "/") != "" { // also a path such as //a/, which would redirect to itself
		http.Error(w, "there is no such store", http.StatusNotFound)
		return
	}

	at := slices.IndexFunc(s.mounts, func(m Mount) bool { return m.Dashboard.shows(r) })
	if at < 0 {
		s.mounts[0].Dashboard.ServeHTTP(w, r) // which shows the reason, under its own title
		return
	}

	first := &s.mounts[at]
	base := "./"
	if to, _, _ := strings.Cut(slashed(r), "?"); to != "" {
		base = to
	}
	w.Header().Set("Location", base+first.Name+"/")
	w.WriteHeader(http.StatusSeeOther)
}

// shows reports whether the user who sends a request may see an overview, of all queues or of some
// that are known.
func (d *Dashboard) shows(r *http.Request) bool {
	who, err := d.door.Admit(r)
	if err != nil {
		return false
	}
	c := &call{Dashboard: d, r: r, who: who}
	return c.mayView("") || slices.ContainsFunc(d.looker.queues(), c.mayView)
}

// picker is the group of stores that a page belongs to. It is in the context of the page's
// request.
type picker struct {
	stores *Stores
	mount  *Mount
}

type pickerKey struct{}

// pickerOf returns the picker of a request; nil without [Stores].
func pickerOf(r *http.Request) *picker {
	p, _ := r.Context().Value(pickerKey{}).(*picker)
	return p
}

// tabs returns links to the stores that the user who sends a request may see, including the page's
// own. It returns no links if that is the only one.
func (p *picker) tabs(r *http.Request) (tabs []tab) {
	for at := range p.stores.mounts {
		m := &p.stores.mounts[at]
		if m == p.mount || m.Dashboard.shows(r) {
			tabs = append(tabs, tab{m.Name, "../" + m.Name + "/", m == p.mount})
		}
	}
	if len(tabs) == 1 {
		return nil
	}
	return tabs
}
