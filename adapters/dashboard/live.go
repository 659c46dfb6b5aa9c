package dashboard

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// live is a page that scripts request again. They replace its regions, its title and its icon, and
// need only the parts that differ.
type live struct {
	page  []byte
	parts []part
	// tag is a digest of everything that scripts take.
	tag string
	// title has the tags of the title and the icon. body is where the tag of the body begins and
	// ends in the page.
	title []byte
	body  [2]int
}

// shell matches the tags that scripts use from a page beside its regions.
var shell = regexp.MustCompile(`<title>[^<]*</title>|<link rel="icon"[^>]*>|<body [^>]*>`)

func liveOf(page []byte) *live {
	l := &live{page: page, parts: partsOf(page)}
	for _, at := range shell.FindAllIndex(page, 3) {
		l.title = append(l.title, page[l.body[0]:l.body[1]]...)
		l.body = [2]int(at)
	}

	sums := slices.Clone(l.title)
	for _, n := range regions(l.parts) {
		sums = append(sums, l.parts[n].sum[:]...)
	}
	if len(l.parts) == 0 {
		sums = page
	}

	sum := digestOf(sums)
	l.tag = base64.RawURLEncoding.EncodeToString(sum[:])
	return l
}

// tagged writes the tag of the body, with the page's own tag: scripts can't read the ETag of a
// page that the browser has loaded.
func (l *live) tagged(b *bytes.Buffer) {
	body := l.page[l.body[0]:l.body[1]]
	fmt.Fprintf(b, `%s data-tag="%s">`, body[:len(body)-1], l.tag)
}

// whole returns the page.
func (l *live) whole() []byte {
	var b bytes.Buffer
	b.Grow(len(l.page) + 64)
	b.Write(l.page[:l.body[0]])
	l.tagged(&b)
	b.Write(l.page[l.body[1]:])
	return b.Bytes()
}

// update returns the parts of the page that scripts use, without the parts that they have. Parts
// that follow each other both in the page and in the scripts' page are replaced by one empty
// element, with the numbers of the first and the last in the scripts' page.
func (l *live) update(has *holds) []byte {
	var b bytes.Buffer
	b.WriteString("<!doctype html>")
	b.Write(l.title)
	l.tagged(&b)
	for _, n := range regions(l.parts) {
		l.region(&b, n, has)
	}
	return b.Bytes()
}

func (l *live) region(b *bytes.Buffer, region int, has *holds) {
	at, gap := l.parts[region].from, gap{}
	for n := region; n < l.parts[region].end; {
		p := &l.parts[n]
		if next, there := gap.next(has, p); there {
			gap.last, at, n = next, p.to, p.end
			continue
		}

		gap.write(b)
		b.Write(l.page[at:p.from])

		number, there := has.numbers[p.sum]
		if !there {
			at, n = p.from, n+1
			continue
		}

		gap.name, gap.first, gap.last = tagName(l.page[p.from+1:p.inner-1]), number, number
		at, n = p.to, p.end
	}

	gap.write(b)
	b.Write(l.page[at:l.parts[region].to])
}

// gap stands for parts that the client has. Without a name it is empty.
type gap struct {
	name        []byte
	first, last int
}

func (g *gap) next(has *holds, p *part) (int, bool) {
	if g.name == nil {
		return 0, false
	}
	return has.after(g.last, p)
}

func (g *gap) write(b *bytes.Buffer) {
	if g.name != nil {
		fmt.Fprintf(b, `<%s data-same="%d %d"></%s>`, g.name, g.first, g.last, g.name)
	}
	g.name = nil
}

// maxSent is the maximum number of parts that are remembered, of all sent pages together.
const maxSent = 1 << 16

// sent remembers which parts the most recently sent pages have, so that clients need not send
// them.
type sent struct {
	mu    sync.Mutex
	pages []sentPage // the last is the most recently requested one
}

type sentPage struct {
	tag   string
	parts []part
}

// keep remembers a page, and forgets those that were sent longest ago.
func (s *sent) keep(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = slices.DeleteFunc(s.pages, func(p sentPage) bool { return p.tag == l.tag })
	s.pages = append(s.pages, sentPage{l.tag, l.parts})
	n := 0
	for at := range slices.Backward(s.pages) {
		if n += len(s.pages[at].parts) + 1; n > maxSent && at < len(s.pages)-1 {
			s.pages = slices.Delete(s.pages, 0, at+1)
			return
		}
	}
}

// of returns the parts of a page with a tag, or nil if the page was forgotten.
func (s *sent) of(tag string) []part {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range slices.Backward(s.pages) {
		if s.pages[at].tag == tag {
			return s.pages[at].parts
		}
	}
	return nil
}
