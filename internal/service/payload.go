package service

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// Octets are bytes in JSON: in data as a string if they are UTF-8, and else in data_base64. A
// request may use either.
type Octets struct {
	Data   *string `json:"data,omitempty" doc:"the bytes, if they are UTF-8"`
	Base64 *string `json:"data_base64,omitempty" doc:"the bytes in standard Base64, if they are not UTF-8"`
}

// OctetsOf returns bytes in their JSON form.
func OctetsOf(data []byte) Octets {
	if utf8.Valid(data) {
		text := string(data)
		return Octets{Data: &text}
	}
	text := base64.StdEncoding.EncodeToString(data)
	return Octets{Base64: &text}
}

// Bytes returns the bytes that a request gives.
func (o *Octets) Bytes() ([]byte, error) {
	switch {
	case (o.Data == nil) == (o.Base64 == nil):
		return nil, ProblemBadRequest.With("a payload has either data or data_base64")
	case o.Data != nil:
		return []byte(*o.Data), nil
	}
	data, err := base64.StdEncoding.DecodeString(*o.Base64)
	if err != nil {
		return nil, ProblemBadRequest.With("data_base64 can't be read: %v", err)
	}
	return data, nil
}

// Payload is one payload as it is shown.
type Payload struct {
	Score float64 `json:"score" doc:"its place in the order: lowest first"`
	Octets
	Meta       *string `json:"meta,omitempty" doc:"the Meta of the push, if it is UTF-8"`
	MetaBase64 *string `json:"meta_base64,omitempty" doc:"the Meta in standard Base64, if it is not UTF-8"`
}

// payloads shows the payloads of a job or dead letter. most bounds their number; 0 means no
// payloads.
func (c *call) payloads(queue, id string, list []core.Payload, most int) []Payload {
	if most == 0 {
		return nil
	}

	shown := make([]Payload, 0, min(most, len(list)))
	for _, p := range list[:min(most, len(list))] {
		view := Payload{Score: p.Score, Octets: OctetsOf(c.bytes(queue, id, p.Data))}
		if p.Meta != nil && c.o.RedactPayload == nil {
			meta := OctetsOf(p.Meta)
			view.Meta, view.MetaBase64 = meta.Data, meta.Base64
		}
		shown = append(shown, view)
	}
	return shown
}
