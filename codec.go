package skein

import "encoding/json"

// Codec turns payloads into bytes and back. It must be safe for concurrent use.
//
// Encode must be deterministic: a payload's bytes are its identity, so equal
// payloads that encode differently don't merge and run twice. Beware of maps in
// random order, of times with a monotonic clock, and of encoders that add ids.
//
// Decode may keep the bytes, and must not change them. What becomes of a payload
// that it refuses, the queue's Undecodable says.
type Codec[T any] interface {
	Encode(payload T) ([]byte, error)
	Decode(data []byte) (T, error)
}

// JSON is the default Codec: encoding/json, which sorts the keys of maps. Its
// zero value is ready.
type JSONCodec[T any] struct{}

// Encode implements Codec.
func (JSONCodec[T]) Encode(payload T) ([]byte, error) { return json.Marshal(payload) }

// Decode implements Codec.
func (JSONCodec[T]) Decode(data []byte) (payload T, err error) {
	err = json.Unmarshal(data, &payload)
	return payload, err
}

// Raw is the Codec of queues of []byte: payloads are stored as they are. Neither
// the pusher nor a handler may change the bytes afterwards. Its zero value is
// ready.
type RawCodec struct{}

// Encode implements Codec.
func (RawCodec) Encode(payload []byte) ([]byte, error) { return payload, nil }

// Decode implements Codec.
func (RawCodec) Decode(data []byte) ([]byte, error) { return data, nil }
