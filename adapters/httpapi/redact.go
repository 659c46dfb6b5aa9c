package httpapi

import (
	"bytes"
	"strconv"
	"strings"
)

// id returns what is shown of an id.
func (a *API) id(queue, id string) string {
	if a.o.RedactID == nil || id == "" {
		return strings.ToValidUTF8(id, "\uFFFD")
	}
	return strings.ToValidUTF8(a.o.RedactID(queue, id), "\uFFFD")
}

// bytes returns what is shown of a payload.
func (a *API) bytes(queue, id string, data []byte) []byte {
	if a.o.RedactPayload == nil {
		return data
	}
	return a.o.RedactPayload(queue, id, bytes.Clone(data))
}

// errorText returns what is shown of an error's text.
func (a *API) errorText(queue, id, text string) string {
	if a.o.RedactError != nil && text != "" {
		text = a.o.RedactError(queue, id, text)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// quoted is an id as texts of package inspect have it.
func quoted(id string) string { return strconv.Quote(id) }

// redactedText returns a text in which an id that is quoted is shown as it may be.
func (c *call) redactedText(text, id string) string {
	return strings.ReplaceAll(text, quoted(id), quoted(c.id(c.queue, id)))
}
