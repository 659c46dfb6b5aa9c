package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// script stands in for the script of an open page: it requests the page again with the parts that
// it has, and completes the answer.
type script struct {
	h    *house
	path string
	// page is its present page.
	page string
}

var (
	gaps    = regexp.MustCompile(`<(\w+) data-same="(\d+) (\d+)"></\w+>`)
	ticking = regexp.MustCompile(`(<time [^>]*data-(?:ago|for)>)[^<]*`)
	tags    = regexp.MustCompile(`<body [^>]* data-tag="([^"]+)"`)
)

func (h *house) opens(path string) *script { return &script{h, path, h.get(path)} }

func (s *script) tag() string {
	s.h.t.Helper()
	m := tags.FindStringSubmatch(s.page)
	if m == nil {
		s.h.t.Fatalf("%s has no tag", s.path)
	}
	return m[1]
}

// asks returns the next answer as it is sent.
func (s *script) asks() *httptest.ResponseRecorder {
	s.h.t.Helper()
	s.h.board.looker.acted()
	r := request(http.MethodGet, s.path, nil)
	r.Header.Set("If-None-Match", `W/"`+s.tag()+`"`)
	r.Header.Set(partsHeader, strconv.Itoa(len(partsOf([]byte(s.page)))))
	return answerOf(s.h.board, r)
}

// takes completes an answer, and returns the elements with a key that it has in full.
func (s *script) takes(answer string) (keys []string) {
	s.h.t.Helper()
	for _, m := range regexp.MustCompile(` data-k="([^"]*)"`).FindAllStringSubmatch(answer, -1) {
		keys = append(keys, m[1])
	}
	had := partsOf([]byte(s.page))
	s.page = gaps.ReplaceAllStringFunc(answer, func(gap string) string {
		m := gaps.FindStringSubmatch(gap)
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[3])
		if first > last || last >= len(had) {
			s.h.t.Fatalf("%s has no part %s of %d", s.path, gap, len(had))
		}
		element := s.page[had[first].from:had[last].to]
		if !strings.HasPrefix(element, "<"+m[1]+" ") && !strings.HasPrefix(element, "<"+m[1]+">") {
			s.h.t.Errorf("%s stands for %.40s", gap, element)
		}
		return element
	})
	return keys
}

// regionsOf returns the parts of a page that scripts take, without texts that they update.
func regionsOf(page string) string {
	var b strings.Builder
	parts := partsOf([]byte(page))
	for _, n := range regions(parts) {
		b.WriteString(page[parts[n].from:parts[n].to] + "\n")
	}
	return ticking.ReplaceAllString(b.String(), "$1")
}

// An update has nothing if nothing has changed, the row that has changed, or all.
func TestAnUpdateHasWhatHasChanged(t *testing.T) {
	const queues = 60
	h := newHouse(t, Options{})
	name := func(n int) string { return fmt.Sprintf("queue-%02d", n) }
	for n := range queues {
		h.declare(name(n), 4)
		h.push(name(n), "a", time.Hour, "p")
	}
	s := h.opens("/")
	whole := len(s.page)
	if w := s.asks(); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("with nothing changed: status %d, %d bytes", w.Code, w.Body.Len())
	}
	h.push(name(30), "b", time.Hour, "p")
	w := s.asks()
	if keys := s.takes(w.Body.String()); len(keys) != 1 || keys[0] != name(30) || w.Body.Len() > whole/15 {
		t.Errorf("with one row changed %d bytes of %d are sent, and the rows %q", w.Body.Len(), whole, keys)
	}
	for n := range queues {
		h.push(name(n), "c", time.Hour, "p")
	}
	w = s.asks()
	if keys := s.takes(w.Body.String()); len(keys) != queues {
		t.Errorf("with all rows changed %d are sent: %q", len(keys), keys)
	}
	if got, want := regionsOf(s.page), regionsOf(h.get("/")); got != want {
		t.Errorf("the page was completed to\n%s\nwant\n%s", got, want)
	}
}

// The page that scripts complete is the one that they would get anew, whatever changes: rows that
// come, go and change places.
func TestUpdatesAddUpToThePage(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "w1", "nightly", nil)
	changes := []func(){
		func() { h.schedule("orders", "w0", "nightly", func(s *core.Schedule) { s.Paused = true }) },
		func() { h.schedule("orders", "w0", "before", func(s *core.Schedule) { ticks(core.TickFired)(s) }) },
		func() {
			h.do("q", "orders", "op", "run-schedule", "name", "nightly", "id", "w1", "confirm", "1")
		},
		func() { h.push("orders", "w1", time.Hour, "p"); h.push("orders", "w2", 2*time.Hour, "p", "q") },
		func() {
			for _, id := range hostileIDs() {
				h.push("orders", id, time.Hour, hostile...)
			}
		},
		func() { h.declare("mails", 40); h.push("mails", "m", 0, "p") },
		func() { h.ended(core.Failed, "boom", numbered("f", 12)...) },
		func() { h.ended(core.Buried, "dead", numbered("d", 3)...) },
		func() { h.announce(ports.Node{Owner: "n1", Name: "n1", Queues: []string{"orders"}, Lanes: 4}) },
		func() { h.announce(ports.Node{Owner: "n2", Name: "n0", Queues: []string{"mails"}, Lanes: 4}) },
		func() { h.push("orders", "w0", time.Minute, "p"); h.advance(70 * time.Second) },
		func() { h.push("orders", "now", 0, "p"); h.turn("orders", core.ShardOf("now", houseShards), 1) },
		func() {
			h.do("q", "orders", "op", "track", "id", "w1")
			h.do("q", "orders", "op", "track", "id", "never")
		},
		func() { h.do("q", "orders", "op", "pause") },
		func() { h.advance(26 * time.Hour) },
	}
	var open []*script
	for _, path := range []string{
		"/", "/?sort=waiting", "/queue?q=orders", "/queue?q=orders&by=owner", "/shards?q=orders", "/jobs?q=orders",
		"/jobs?q=orders&list=retries", "/id?q=orders&id=w1",
		"/schedules", "/schedules?q=orders", "/named?q=orders&name=nightly", "/schedule?q=orders&name=nightly&id=w1",
		"/id?q=orders&id=now", "/busy", "/busy?q=orders", "/errors", "/morgue?q=orders", "/unreadable?q=orders",
		"/tracked?q=orders", "/nodes", "/store", "/audit",
	} {
		open = append(open, h.opens(path))
	}
	updates := 0
	for n, change := range changes {
		change()
		for _, s := range open {
			w := s.asks()
			switch w.Code {
			case http.StatusOK:
				updates++
				s.takes(w.Body.String())
			case http.StatusNotModified:
			default:
				t.Fatalf("%s: status %d", s.path, w.Code)
			}
			want := h.get(s.path)
			if got, want := regionsOf(s.page), regionsOf(want); got != want {
				t.Errorf("%s after change %d was completed to\n%s\nwant\n%s", s.path, n, got, want)
			}
		}
	}
	if updates < len(changes) {
		t.Errorf("%d updates of %d changes", updates, len(changes))
	}
}

// A client whose page is not known here any more, or that counts other parts in it, gets all of it.
func TestWhoHoldsSomethingElseGetsThePage(t *testing.T) {
	h := newHouse(t, Options{})
	s := h.opens("/")
	ask := func(tag, parts string) string {
		r := request(http.MethodGet, "/", nil)
		r.Header.Set("If-None-Match", tag)
		r.Header.Set(partsHeader, parts)
		return answerOf(h.board, r).Body.String()
	}
	tag, parts := `W/"`+s.tag()+`"`, strconv.Itoa(len(partsOf([]byte(s.page))))
	h.push("orders", "a", 0, "p")
	h.board.looker.acted()
	for name, page := range map[string]string{
		"another tag": ask(`W/"nix"`, parts),
		"other parts": ask(tag, "7"),
		"no parts":    ask(tag, ""),
	} {
		if strings.Contains(page, "data-same") || !strings.Contains(page, "<footer") {
			t.Errorf("%s is answered with %d bytes and gaps", name, len(page))
		}
	}
	if page := ask(tag, parts); !strings.Contains(page, "data-same") {
		t.Errorf("the page held is answered with %s", page)
	}
	h.board.sent.pages = nil
	if page := ask(tag, parts); strings.Contains(page, "data-same") {
		t.Error("a page that was forgotten is answered with gaps")
	}
}

// Scripts count on how long ago a time is, and must be sent another time: a lease that is renewed
// does not look as if it were over.
func TestATimeThatHasChangedIsSent(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, "p")
	index := core.ShardOf("a", houseShards)
	h.turn("orders", index, 1)
	s := h.opens("/shards?q=orders")
	if w := s.asks(); w.Code != http.StatusNotModified {
		t.Errorf("with nothing changed: status %d", w.Code)
	}
	lease := h.turns[core.Shard{Queue: "orders", Index: index}].Lease
	if _, err := h.store.Renew(t.Context(), ports.RenewRequest{Lease: lease, TTL: 2 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	w := s.asks()
	if keys := s.takes(w.Body.String()); w.Code != http.StatusOK || len(keys) != 1 || keys[0] != strconv.Itoa(index) {
		t.Errorf("with a lease renewed: status %d, and the rows %q", w.Code, keys)
	}
	if got, want := regionsOf(s.page), regionsOf(h.get("/shards?q=orders")); got != want {
		t.Errorf("the page was completed to\n%s\nwant\n%s", got, want)
	}
}

// A page whose parts can't be distinguished is sent whole.
func TestAPageThatIsNotWellFormedHasNoParts(t *testing.T) {
	const head = `<!doctype html><title>x</title><link rel="icon" href="i"><body data-now="1" data-live>`
	for name, tt := range map[string]struct {
		page  string
		parts int
	}{
		"well formed": {
			head + `<p data-k="x"></p><div data-region="a"><div><p data-k="1">a</p> <tr></tr></div></div>` +
				`<i data-region="b">c</i>`,
			4,
		},
		"a part goes on":    {head + `<div data-region="a"><p data-k="1">a</div>`, 0},
		"a region goes on":  {head + `<div data-region="a"><div></div>`, 0},
		"a tag goes on":     {head + `<div data-region="a"></div`, 0},
		"there is no part":  {head + `<div></div>`, 0},
		"one that is empty": {head + `<svg data-region="a"><rect x="1"/><rect/></svg>`, 3},
	} {
		l := liveOf([]byte(tt.page))
		if len(l.parts) != tt.parts {
			t.Errorf("%s: %d parts, want %d: %+v", name, len(l.parts), tt.parts, l.parts)
		}
		want := strings.Replace(tt.page, "data-live>", `data-live data-tag="`+l.tag+`">`, 1)
		if got := string(l.whole()); got != want {
			t.Errorf("%s: the page is %s, want %s", name, got, want)
		}
	}
	if a, b := liveOf([]byte(head+"<p>a</p>")), liveOf([]byte(head+"<p>b</p>")); a.tag == b.tag {
		t.Error("two pages without regions have the same tag")
	}
}

// The memory of pages is bounded: it has those that were sent last.
func TestWhatIsRememberedOfPagesIsBounded(t *testing.T) {
	var s sent
	for n := range 20 {
		s.keep(&live{tag: fmt.Sprint(n), parts: make([]part, maxSent/10)})
	}
	kept := 0
	for n := range 20 {
		if s.of(fmt.Sprint(n)) != nil {
			kept++
		}
	}
	if kept != 9 || s.of("19") == nil || s.of("10") != nil {
		t.Errorf("%d pages are kept", kept)
	}
	s.keep(&live{tag: "large", parts: make([]part, 2*maxSent)})
	if s.of("large") == nil || s.of("19") != nil {
		t.Error("of a page larger than the bound it alone is kept")
	}
}

// A page that many ask for again and again takes the room of one.
func TestAPageIsRememberedOnce(t *testing.T) {
	var s sent
	s.keep(&live{tag: "other", parts: make([]part, maxSent/10)})
	for range 20 {
		s.keep(&live{tag: "same", parts: make([]part, maxSent/10)})
	}
	if s.of("other") == nil || s.of("same") == nil || len(s.pages) != 2 {
		t.Errorf("%d pages are kept of two", len(s.pages))
	}
}

// Pages that differ in the parts that scripts take beside their regions have different tags, or
// the old title would stay.
func TestATitleThatHasChangedIsSent(t *testing.T) {
	page := func(title, icon string) *live {
		return liveOf([]byte(`<title>` + title + `</title><link rel="icon" href="` + icon +
			`"><body data-now="1"><div data-region="a">x</div>`))
	}
	held := page("fine", "i")
	for name, l := range map[string]*live{"a title": page("late", "i"), "an icon": page("fine", "j")} {
		if l.tag == held.tag || !strings.Contains(string(l.update(holdsOf(held.parts))), string(l.title)) {
			t.Errorf("%s that has changed is not sent: %s", name, l.update(holdsOf(held.parts)))
		}
	}
}

// Parts between which there is something, in the page or in the one held, are not left out
// together.
func TestWhatIsBetweenPartsIsSent(t *testing.T) {
	page := func(between string) *live {
		return liveOf(
			[]byte(`<title>x</title><body data-now="1"><div data-region="a"><tr>1</tr>` + between + `<tr>2</tr></div>`),
		)
	}
	for _, tt := range []struct{ held, now, want string }{
		{"\n", " changed \n", `<tr data-same="1 1"></tr> changed` + " \n" + `<tr data-same="2 2"></tr>`},
		{" text ", "\n", `<tr data-same="1 1"></tr>` + "\n" + `<tr data-same="2 2"></tr>`},
		{"\n", "\n", `<div data-same="0 0"></div>`},
	} {
		if got := string(page(tt.now).update(holdsOf(page(tt.held).parts))); !strings.Contains(got, tt.want) {
			t.Errorf("with %q held and %q now: %s, want %s", tt.held, tt.now, got, tt.want)
		}
	}
}
