package service

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/skeinq/skein/internal/shown"
)

// redactor redacts the fields of records by their classes.
type redactor struct {
	*Service
	// payloads is true if the request has payloads.
	payloads bool
}

// Shows implements [shown.Redactor].
func (r redactor) Shows(class string) bool {
	switch class {
	case shown.Public, shown.Queue, shown.ID, shown.Target, shown.Error, shown.Quoting, shown.Note, shown.Group,
		shown.Sealed:
		return true
	case shown.Tags: // they may name what ids name
		return r.o.RedactID == nil
	case shown.Payload:
		return r.payloads
	case shown.Meta:
		return r.payloads && r.o.RedactPayload == nil
	}
	return false
}

// Text implements [shown.Redactor].
func (r redactor) Text(class string, of shown.Of, text string) string {
	switch class {
	case shown.ID:
		return r.ID(of.Queue, text)
	case shown.Target:
		if of.Queue == "" { // it is a server
			return text
		}
		return r.ID(of.Queue, text)
	case shown.Tags:
		return text // Shows hides them
	case shown.Error:
		return r.ErrorText(of.Queue, of.ID, text)
	case shown.Quoting:
		return r.ErrorText(of.Queue, of.ID, r.withoutIDs(text))
	case shown.Note:
		// People write ids without quotes, so a note is hidden if no rule of errors removes them.
		if text != "" && r.o.RedactID != nil && r.o.RedactError == nil {
			return "…"
		}
		return r.ErrorText(of.Queue, of.ID, r.withoutIDs(text))
	case shown.Group:
		return r.groupKey(text)
	case shown.Sealed:
		return r.sealed(text)
	}
	return ""
}

// Bytes implements [shown.Redactor].
func (r redactor) Bytes(class string, of shown.Of, data []byte) []byte {
	switch {
	case class != shown.Payload && class != shown.Meta:
		return nil
	case r.o.RedactPayload == nil:
		return data
	}
	return r.o.RedactPayload(of.Queue, of.ID, bytes.Clone(data))
}

// quotations are quoted texts, such as ids, in the text of an error.
var quotations = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// withoutIDs replaces all quotations in an action's error or filter, or in a note, if ids are
// redacted. The text of an error doesn't show which quotations are ids, and a filter may name a
// tag.
func (s *Service) withoutIDs(text string) string {
	if s.o.RedactID == nil {
		return text
	}
	return quotations.ReplaceAllLiteralString(text, `"…"`)
}

// ID returns an id as it may be shown.
func (s *Service) ID(queue, id string) string {
	if s.o.RedactID == nil || id == "" {
		return strings.ToValidUTF8(id, "\uFFFD")
	}
	return strings.ToValidUTF8(s.o.RedactID(queue, id), "\uFFFD")
}

// ErrorText returns an error's text as it may be shown.
func (s *Service) ErrorText(queue, id, text string) string {
	if s.o.RedactError != nil && text != "" {
		text = s.o.RedactError(queue, id, text)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
