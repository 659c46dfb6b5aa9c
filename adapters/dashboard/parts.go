package dashboard

import (
	"bytes"
	"crypto/sha256"
	"slices"
)

// part is an element of a page that a live update leaves out if the client has it: a region, or in
// one a row, a chart or a step of a chart. Parts are numbered in the order in which they begin,
// and may contain others. The script numbers them alike.
type part struct {
	// from is the position in the page where the part's tag begins, inner where the tag ends, and to
	// where the element ends.
	from, inner, to int
	// end is the number of the first later part that is not inside this one.
	end int
	// follows reports whether only white space is between the part that ends before it and this one.
	follows bool
	// sum is a digest of the element, without the times that scripts update by themselves.
	sum digest
}

type digest [12]byte

func digestOf(data []byte) digest {
	sum := sha256.Sum256(data)
	return digest(sum[:])
}

// splitter finds the parts of a page, tag by tag.
type splitter struct {
	page  []byte
	parts []part
	open  []openPart
	// still is the text for digests: the open region, without times that change by themselves.
	still []byte
	// last is where the part that ended last ends.
	last int
}

// openPart is a part whose end has not come.
type openPart struct {
	number, still int
	name          []byte
	// depth is how many elements of its name are open, itself among them.
	depth int
}

// partsOf returns the parts of a page, or no parts if one has no end. Templates escape < and > in
// texts and attributes, so each < begins a tag.
func partsOf(page []byte) []part {
	s := &splitter{page: page}
	counted := false // scripts count the text on
	for at := 0; ; {
		from := bytes.IndexByte(page[at:], '<')
		to := bytes.IndexByte(page[at+max(from, 0):], '>')
		if from < 0 || to < 0 {
			if len(s.open) > 0 {
				return nil
			}
			return s.parts
		}

		from, to = at+from, at+from+to+1
		if len(s.open) > 0 && !counted {
			s.still = append(s.still, page[at:from]...)
		}
		counted = s.tag(from, to)
		at = to
	}
}

// tag takes a tag, and reports whether scripts update the text after it.
func (s *splitter) tag(from, to int) (counted bool) {
	tag := s.page[from+1 : to-1]
	closes := tag[0] == '/'
	name := tagName(bytes.TrimPrefix(tag, []byte("/")))

	if !closes && s.begins(name, tag) {
		s.open = append(s.open, openPart{number: len(s.parts), still: len(s.still), name: name})
		s.parts = append(s.parts, part{
			from:    from,
			inner:   to,
			follows: s.last > 0 && len(bytes.TrimSpace(s.page[s.last:from])) == 0,
		})
	}
	if len(s.open) == 0 {
		return false
	}

	s.still = append(s.still, s.page[from:to]...)
	if o := &s.open[len(s.open)-1]; string(name) == string(o.name) {
		if !closes {
			o.depth++
		}
		if closes || tag[len(tag)-1] == '/' {
			o.depth--
		}
		if o.depth == 0 {
			s.ends(o, to)
		}
	}

	counts := func(mark string) bool { return bytes.Contains(tag, []byte(mark)) }
	return string(name) == "time" && (counts(" data-ago") || counts(" data-for") || counts(" data-soon"))
}

// begins reports whether a part begins with a tag.
func (s *splitter) begins(name, tag []byte) bool {
	if len(s.open) == 0 {
		return bytes.Contains(tag, []byte(` data-region="`))
	}
	switch string(name) {
	case "figure", "rect", "tr":
		return true
	}
	return bytes.Contains(tag, []byte(` data-k="`))
}

func (s *splitter) ends(o *openPart, at int) {
	p := &s.parts[o.number]
	p.to, p.end, p.sum, s.last = at, len(s.parts), digestOf(s.still[o.still:]), at
	if s.open = s.open[:len(s.open)-1]; len(s.open) == 0 {
		s.still = s.still[:0]
	}
}

func tagName(tag []byte) []byte {
	if end := bytes.IndexAny(tag, " /"); end >= 0 {
		return tag[:end]
	}
	return tag
}

// regions yields the numbers of the parts that are regions.
func regions(parts []part) (numbers []int) {
	for n := 0; n < len(parts); n = parts[n].end {
		numbers = append(numbers, n)
	}
	return numbers
}

// holds are the parts that a client has, by their identity.
type holds struct {
	parts   []part
	numbers map[digest]int
}

func holdsOf(parts []part) *holds {
	h := &holds{parts, make(map[digest]int, len(parts))}
	for n, p := range slices.Backward(parts) {
		h.numbers[p.sum] = n
	}
	return h
}

// after returns the number of the sibling that a client has after the part with a number, if it is
// the wanted one.
func (h *holds) after(number int, wanted *part) (next int, there bool) {
	next = h.parts[number].end
	return next, wanted.follows && next < len(h.parts) && h.parts[next].follows && h.parts[next].sum == wanted.sum
}
