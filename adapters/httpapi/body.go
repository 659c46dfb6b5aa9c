package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/skeinq/skein/internal/canonical"
	"github.com/skeinq/skein/internal/jsonerror"
	"github.com/skeinq/skein/internal/service"
)

// decodeBody reads a JSON body into a struct. It refuses what package json would correct silently,
// since an id could become another one: bytes that are not UTF-8, and halves of surrogate pairs.
// anyJSON are the fields that take any JSON.
func decodeBody(h http.Header, body io.Reader, into any, anyJSON map[string]bool) error {
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || kind != "application/json" {
		return service.ProblemMediaType.With("send the body with Content-Type: application/json; an empty body is {}")
	}

	data, err := io.ReadAll(body)
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return err
	} else if err != nil {
		return service.ProblemBadRequest.With("the body can't be read: %v", err)
	}

	if !utf8.Valid(data) {
		return service.ProblemBadRequest.With("the body is not UTF-8; send payloads that are not UTF-8 in data_base64")
	}
	if canonical.HalfSurrogate(data) {
		return service.ProblemBadRequest.With("the body has half of a surrogate pair; send whole characters")
	}

	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return service.ProblemBadRequest.With("the body can't be read: %v", jsonerror.Plain(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return service.ProblemBadRequest.With("the body has more than one JSON value")
	}

	return unambiguous(data, anyJSON)
}
