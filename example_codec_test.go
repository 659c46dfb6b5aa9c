package skein_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// Reading is a sensor's measurement.
type Reading struct {
	At      time.Time
	Celsius int16
}

// ReadingCodec stores a reading in 10 bytes. It has no choice about any of them, so
// equal readings are equal bytes, and merge.
type ReadingCodec struct{}

// Encode implements skein.Codec.
func (ReadingCodec) Encode(r Reading) ([]byte, error) {
	data := binary.BigEndian.AppendUint64(nil, uint64(r.At.Unix()))
	return binary.BigEndian.AppendUint16(data, uint16(r.Celsius)), nil
}

// Decode implements skein.Codec. A payload that it can't decode goes to the morgue.
func (ReadingCodec) Decode(data []byte) (Reading, error) {
	if len(data) != 10 {
		return Reading{}, fmt.Errorf("a reading has 10 bytes, not %d", len(data))
	}
	seconds := int64(binary.BigEndian.Uint64(data))
	return Reading{time.Unix(seconds, 0).UTC(), int16(binary.BigEndian.Uint16(data[8:]))}, nil
}

func ExampleCodec() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	readings := skein.NewQueue("readings", skein.QueueOptions[Reading]{Codec: ReadingCodec{}})
	client := skein.NewClient(store, skein.ClientOptions{})
	nine := time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	for _, r := range []Reading{{nine, -3}, {nine.Add(time.Hour), 2}, {nine, -3}} {
		if err := readings.Push(ctx, client, "roof", r); err != nil {
			log.Fatal(err)
		}
	}

	handler := readings.Handler(func(_ context.Context, sensor string, readings []Reading) error {
		for _, r := range readings {
			fmt.Println(sensor, r.At.Format(time.TimeOnly), r.Celsius)
		}
		return nil
	})
	if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// roof 09:00:00 -3
	// roof 10:00:00 2
}

// Programs in other languages push the same bytes, whatever their JSON looks like.
func ExampleJSONCodec_canonical() {
	type order struct {
		Paid bool   `json:"paid"`
		By   string `json:"by"`
	}
	codec := skein.JSONCodec[order]{Canonical: true}
	data, err := codec.Encode(order{Paid: true, By: "<Zoë>"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(data))
	// Output:
	// {"by":"<Zoë>","paid":true}
}

// A strict codec refuses a payload whose field was renamed since, in place of losing it.
func ExampleJSONCodec_strict() {
	type order struct{ Number int }
	for _, codec := range []skein.JSONCodec[order]{{}, {Strict: true}} {
		o, err := codec.Decode([]byte(`{"No":7}`))
		fmt.Println(o.Number, err != nil)
	}
	// Output:
	// 0 false
	// 0 true
}

// compressed marks the texts that compress has made.
const compressed = "flate:"

// compress fits more of a stack into the 3 KiB that a server stores of an error.
func compress(text string) string {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return text
	}
	if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
		return text
	}
	return compressed + base64.StdEncoding.EncodeToString(packed.Bytes())
}

// decompress leaves data unchanged that compress has not made.
func decompress(stored string) string {
	encoded, ok := strings.CutPrefix(stored, compressed)
	if !ok {
		return stored
	}
	packed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return stored
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return stored
	}
	return string(text)
}

// Errors are stored compressed, and read everywhere as they were.
func ExampleErrorCodec() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{MaxRetries: skein.NoRetries})
	if err := orders.Push(ctx, skein.NewClient(store, skein.ClientOptions{}), "order-42", "paid"); err != nil {
		log.Fatal(err)
	}

	handler := orders.Handler(func(context.Context, string, []string) error {
		return errors.New(strings.Repeat("the bank is closed; ", 1000))
	})
	options := skein.ServerOptions{ErrorCodec: skein.ErrorCodec{Encode: compress, Decode: decompress}}
	if _, err := skein.NewServer(store, options, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}

	found, err := store.Find(ctx, ports.FindRequest{Queue: "orders", ID: "order-42", Payloads: 1000})
	if err != nil {
		log.Fatal(err)
	}

	inspector := inspect.New(store, inspect.Options{DecodeError: decompress})
	shown, err := inspector.Find(ctx, "orders", "order-42")
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println("stored:", len(found.DeadLetter.Failures.Newest().Text) < 200, strings.HasPrefix(found.DeadLetter.Failures.Newest().Text, compressed))
	fmt.Println("shown:", len(shown.DeadLetter.LastError), shown.DeadLetter.LastError[:18])
	// Output:
	// stored: true true
	// shown: 20000 the bank is closed
}
