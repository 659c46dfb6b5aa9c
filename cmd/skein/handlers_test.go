package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// blockOfHandlers returns the block of docs/guide/work.md in a language.
func blockOfHandlers(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide/work.md")
	must(t, err)
	blocks := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d blocks of %s, want one", len(blocks), language)
	}
	return blocks[0][1]
}

// needs skips a test without these programs, except in CI, where that is a failure.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil && os.Getenv("CI") == "true" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
}

// freePort returns a port that nobody listened at a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, l.Close()) }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

// The handler of the guide handles signed calls of the command, answers those of the guide's shell,
// refuses others, and its failures are those of jobs.
func TestTheHandlerOfTheGuide(t *testing.T) {
	t.Parallel()
	needs(t, "python3", "sh", "curl", "openssl")
	port := freePort(t)
	var said written
	python := exec.CommandContext(t.Context(), "python3", "-")
	python.Stdin = strings.NewReader(blockOfHandlers(t, "python"))
	python.Env = append(os.Environ(), "PORT="+port, "ORDERS_SECRET="+secretOfTests)
	python.Stdout, python.Stderr = &said, &said
	must(t, python.Start())
	defer func() {
		_ = python.Process.Kill()
		_ = python.Wait()
	}()

	shell := func(secret string) string {
		c := exec.CommandContext(t.Context(), "sh", "-s")
		c.Stdin = strings.NewReader(blockOfHandlers(t, "sh"))
		c.Env = append(os.Environ(), "PORT="+port, "ORDERS_SECRET="+secret, "NO_PROXY=localhost", "no_proxy=localhost")
		answer, _ := c.CombinedOutput()
		return string(answer)
	}
	deadline := time.Now().Add(testservers.Patience)
	for shell(secretOfTests) != "204\n" {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", shell(secretOfTests), said.String())
		}
		time.Sleep(20 * time.Millisecond) // until Python listens, on a slow machine longer
	}
	if answer := shell(strings.Replace(secretOfTests, "M", "N", 1)); answer != "wrong signature401\n" {
		t.Errorf("another secret: %s", answer)
	}

	store := memory.New(memory.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan end, 1)
	go func() {
		code, _, log := runUntil(ctx, store, "work", "orders", "http://localhost:"+port+"/orders", "--keep", "1h",
			"--secret-file", fileOf(t, secretOfTests), "--listen", "127.0.0.1:0")
		ended <- end{code, log}
	}()

	orders := skein.NewQueue("orders", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}, Shards: 1})
	client := skein.NewClient(store, skein.ClientOptions{})
	for number := range 3 {
		payload := fmt.Appendf(nil, `{"number": %d}`, number)
		must(t, orders.Push(t.Context(), client, "77", payload, skein.Score(float64(number))))
	}
	must(t, orders.Push(t.Context(), client, "78", []byte("not JSON")))

	i := inspect.New(store, inspect.Options{})
	for {
		s, err := i.Stats(t.Context(), "orders")
		must(t, err)
		if c := s[0].Counts; c.Retrying == 1 && c.Length() == 1 && c.Claimed == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v: %s", s[0].Counts, said.String())
		}
		time.Sleep(5 * time.Millisecond) // on a slow machine longer
	}
	stop()
	if end := <-ended; end.code != 0 || !strings.Contains(end.said, "KeyError('payload')") {
		t.Errorf("it ended with %d: %s", end.code, end.said)
	}
	numbers := regexp.MustCompile(`'number': (\d)`).FindAllStringSubmatch(said.String(), -1)
	if got := fmt.Sprint(numbers); got != "[['number': 0 0] ['number': 1 1] ['number': 2 2]]" {
		t.Errorf("it handled %s: %s", got, said.String())
	}
}
