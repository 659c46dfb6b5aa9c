package httpapi

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// octets are bytes in JSON: in data as a string if they are UTF-8, and else in data_base64. In a request
// either may be used.
type octets struct {
	Data   *string `json:"data,omitempty" doc:"the bytes, if they are UTF-8"`
	Base64 *string `json:"data_base64,omitempty" doc:"the bytes in standard Base64, if they are not UTF-8"`
}

func octetsOf(data []byte) octets {
	if utf8.Valid(data) {
		text := string(data)
		return octets{Data: &text}
	}
	text := base64.StdEncoding.EncodeToString(data)
	return octets{Base64: &text}
}

// bytes returns what a request means.
func (o *octets) bytes() ([]byte, error) {
	switch {
	case (o.Data == nil) == (o.Base64 == nil):
		return nil, problemBadRequest.with("a payload has either data or data_base64")
	case o.Data != nil:
		return []byte(*o.Data), nil
	}
	data, err := base64.StdEncoding.DecodeString(*o.Base64)
	if err != nil {
		return nil, problemBadRequest.with("data_base64 can't be read: %v", err)
	}
	return data, nil
}

// payload is one payload as it is shown.
type payload struct {
	Score float64 `json:"score" doc:"its order: lowest first"`
	octets
	Meta       *string `json:"meta,omitempty" doc:"what the push set as Meta, if it is UTF-8"`
	MetaBase64 *string `json:"meta_base64,omitempty" doc:"the same in standard Base64, if it is not"`
}

// payloads shows those of a job or dead letter, at most so many; none for 0.
func (c *call) payloads(queue, id string, list []core.Payload, most int) []payload {
	if most == 0 {
		return nil
	}
	shown := make([]payload, 0, min(most, len(list)))
	for _, p := range list[:min(most, len(list))] {
		view := payload{Score: p.Score, octets: octetsOf(c.bytes(queue, id, p.Data))}
		if p.Meta != nil {
			meta := octetsOf(p.Meta)
			view.Meta, view.MetaBase64 = meta.Data, meta.Base64
		}
		shown = append(shown, view)
	}
	return shown
}
