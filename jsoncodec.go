package skein

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/skeinq/skein/internal/canonical"
)

// JSONCodec is the default [Codec]: [encoding/json], which sorts the keys of maps. Its zero value is
// ready.
type JSONCodec[T any] struct {
	// Canonical makes Encode write the canonical form of JSON (docs/rules.md 13), so that equal
	// payloads merge that programs in other languages push over HTTP, or that skein job push --json
	// pushes. Encode then refuses JSON without such a form, such as integers above 2^53 that are not
	// exact; the tag json:",string" writes them as strings.
	//
	// It changes the bytes of most payloads, so a payload that is queued in the former form does not
	// merge with an equal one. Decode reads both.
	Canonical bool
	// Strict makes Decode refuse fields that T does not have. Without it they are lost silently,
	// such as after a field was renamed. It does not apply within types that have a method
	// UnmarshalJSON. A payload that is refused is buried or retried as [QueueOptions].Undecodable
	// says, and docs/guide/changing-payloads.md describes deployments with it.
	Strict bool
}

// Encode implements [Codec].
func (c JSONCodec[T]) Encode(payload T) ([]byte, error) {
	data, err := json.Marshal(payload)
	if err != nil || !c.Canonical {
		return data, err
	}
	return canonical.JSON(data)
}

// Decode implements [Codec]. Data behind the JSON value is refused.
func (c JSONCodec[T]) Decode(data []byte) (payload T, err error) {
	if !c.Strict {
		err = json.Unmarshal(data, &payload)
		return payload, err
	}

	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&payload)
	if _, end := decoder.Token(); err == nil && !errors.Is(end, io.EOF) {
		return payload, json.Unmarshal(data, &payload) // it returns the error of data behind a value
	}

	var lenient T
	if err != nil && json.Unmarshal(data, &lenient) == nil {
		return payload, fmt.Errorf("%w, and the codec is strict; deploy a type that has the field to all servers "+
			"before programs push it", err)
	}
	return payload, err
}
