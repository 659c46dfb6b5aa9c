package service

import (
	"bytes"
	"strings"
)

// ID returns an id as it may be shown.
func (s *Service) ID(queue, id string) string {
	if s.o.RedactID == nil || id == "" {
		return strings.ToValidUTF8(id, "\uFFFD")
	}
	return strings.ToValidUTF8(s.o.RedactID(queue, id), "\uFFFD")
}

// tags returns the tags of an entry as they may be shown. They may name what ids name.
func (s *Service) tags(tags []string) []string {
	if s.o.RedactID != nil {
		return nil
	}
	return tags
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
