package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// Event is one changed file of one commit: the payload. Its id is the path.
type Event struct {
	// Position is the change's place in the history, from 1. It is the score
	// too, and makes each payload different from all others.
	Position int64 `json:"position"`
	// Commit is the hash of the commit.
	Commit string `json:"commit"`
	// Kind is A, D, M or T, as in git's raw format.
	Kind string `json:"kind"`
	// Old is the file's version before the commit, and New its version after it.
	Old Version `json:"old,omitzero"`
	New Version `json:"new,omitzero"`
	// Path is set where it can't be read from the id.
	Path []byte `json:"path,omitempty"`
}

// newEvent returns the id and the payload of a change.
func newEvent(position int64, c change) (id string, e Event) {
	id, whole := pathID(c.Path)
	e = Event{Position: position, Commit: c.Commit, Kind: c.Kind, Old: c.Old, New: c.New}
	if !whole {
		e.Path = []byte(c.Path)
	}
	return id, e
}

// longMark stands in front of the hash in the ids of long paths. In all other ids two hex digits
// follow each percent sign, so no other id contains longMark.
const longMark = "%~"

// pathID returns the id of a path. A path is any bytes, an id UTF-8 without control
// characters: so percent signs, control characters and bytes that are no UTF-8
// are written as %XX, byte by byte, and the path can be read from the id. Where that
// is longer than an id may be, the id is its beginning, longMark and the
// SHA-256 of the path; whole is then false.
func pathID(path string) (id string, whole bool) {
	id = escape(path)
	if len(id) <= core.MaxIDBytes {
		return id, true
	}
	hash := sha256.Sum256([]byte(path))
	end := core.MaxIDBytes - len(longMark) - hex.EncodedLen(len(hash))
	for !utf8.RuneStart(id[end]) {
		end--
	}
	return id[:end] + longMark + hex.EncodeToString(hash[:]), false
}

func escape(path string) string {
	var b strings.Builder
	for rest := path; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if r == '%' || unicode.IsControl(r) || r == utf8.RuneError && size == 1 {
			for i := range size {
				fmt.Fprintf(&b, "%%%02X", rest[i])
			}
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	return b.String()
}

// eventPath returns the path that an event is about.
func eventPath(id string, e Event) (string, error) {
	if e.Path != nil {
		return string(e.Path), nil
	}
	var b strings.Builder
	for rest := id; rest != ""; {
		plain, escaped, found := strings.Cut(rest, "%")
		b.WriteString(plain)
		if !found {
			break
		}
		if len(escaped) < 2 {
			return "", fmt.Errorf("id %q ends inside an escape", id)
		}
		octet, err := hex.DecodeString(escaped[:2])
		if err != nil {
			return "", fmt.Errorf("id %q is no path: %w", id, err)
		}
		b.Write(octet)
		rest = escaped[2:]
	}
	return b.String(), nil
}
