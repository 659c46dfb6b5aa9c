package service

import (
	"bytes"
	"strconv"
	"strings"
)

// ID returns an id as it may be shown.
func (s *Service) ID(queue, id string) string {
	if s.o.RedactID == nil || id == "" {
		return strings.ToValidUTF8(id, "\uFFFD")
	}
	return strings.ToValidUTF8(s.o.RedactID(queue, id), "\uFFFD")
}

// bytes returns a payload as it may be shown.
func (s *Service) bytes(queue, id string, data []byte) []byte {
	if s.o.RedactPayload == nil {
		return data
	}
	return s.o.RedactPayload(queue, id, bytes.Clone(data))
}

// ErrorText returns an error's text as it may be shown.
func (s *Service) ErrorText(queue, id, text string) string {
	if s.o.RedactError != nil && text != "" {
		text = s.o.RedactError(queue, id, text)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// quoted is an id in the form that texts of package inspect use.
func quoted(id string) string { return strconv.Quote(id) }

// redactedText returns a text in which a quoted id is replaced by what may be shown.
func (c *call) redactedText(text, id string) string {
	return strings.ReplaceAll(text, quoted(id), quoted(c.ID(c.queue, id)))
}
