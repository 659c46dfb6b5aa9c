package skein_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

// compressed marks the texts that compress has made.
const compressed = "flate:"

// compress fits more of a stack into the 4 KiB that a store keeps of an error.
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

// decompress leaves what compress has not made as it is.
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
	found, err := store.Find(ctx, "orders", "order-42")
	if err != nil {
		log.Fatal(err)
	}
	inspector := inspect.New(store, inspect.Options{DecodeError: decompress})
	shown, err := inspector.Find(ctx, "orders", "order-42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored:", len(found.DeadLetter.Error) < 200, strings.HasPrefix(found.DeadLetter.Error, compressed))
	fmt.Println("shown:", len(shown.DeadLetter.LastError), shown.DeadLetter.LastError[:18])
	// Output:
	// stored: true true
	// shown: 20000 the bank is closed
}
