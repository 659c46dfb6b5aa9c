package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// decodeBody reads a JSON body into a struct. It refuses what package json would correct silently,
// since an id could become another one: bytes that are not UTF-8, and halves of surrogate pairs.
func decodeBody(h http.Header, body io.Reader, into any) error {
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || kind != "application/json" {
		return problemMediaType.with("send the body with Content-Type: application/json; {} is an empty one")
	}
	data, err := io.ReadAll(body)
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return err
	} else if err != nil {
		return problemBadRequest.with("the body can't be read: %v", err)
	}
	if !utf8.Valid(data) {
		return problemBadRequest.with("the body is not UTF-8; payloads that are not go into data_base64")
	}
	if halfSurrogate(data) {
		return problemBadRequest.with("the body has half of a surrogate pair, which is no character")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return problemBadRequest.with("the body can't be read: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return problemBadRequest.with("the body has more than one JSON value")
	}
	return unambiguous(data)
}

// halfSurrogate reports whether JSON has an escape \uD800 to \uDFFF that is not part of a pair.
func halfSurrogate(data []byte) bool {
	for at := 0; at < len(data); at++ {
		if data[at] != '\\' {
			continue
		}
		first, escaped := escapedAt(data, at)
		if !escaped {
			at++ // the escaped character may be a backslash
			continue
		}
		at += escapeLen - 1
		if !utf16.IsSurrogate(first) {
			continue
		}
		second, escaped := escapedAt(data, at+1)
		if !escaped || utf16.DecodeRune(first, second) == utf8.RuneError {
			return true
		}
		at += escapeLen
	}
	return false
}

// escapeLen is the length of \uXXXX.
const escapeLen = 6

// escapedAt returns the code unit of the escape at a place.
func escapedAt(data []byte, at int) (rune, bool) {
	if len(data) < at+escapeLen || data[at] != '\\' || data[at+1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(data[at+2:at+escapeLen]), 16, 16)
	return rune(unit), err == nil
}

// octets are bytes in JSON: in data as a string if they are UTF-8, and else in data_base64. A
// request may use either.
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

// bytes returns the bytes that a request gives.
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

// payloads shows the payloads of a job or dead letter. most bounds their number; 0 means no
// payloads.
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
