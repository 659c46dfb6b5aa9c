package skein_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// Reading is what a sensor measured.
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

// Decode implements skein.Codec. What it refuses goes to the morgue.
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
