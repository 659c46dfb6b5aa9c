package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wired returns a handler that the given one carries out at the other end of a wire.
func wired(t *testing.T, handle handler) handler {
	t.Helper()
	calls, toParent := io.Pipe()
	answers, toNode := io.Pipe()
	c := newCaller(toParent)
	var both sync.WaitGroup
	both.Go(func() {
		if err := answerCalls(t.Context(), calls, newSender(toNode), handle); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() { _ = c.receive(json.NewDecoder(answers), func() {}) })
	t.Cleanup(func() {
		_ = toParent.Close()
		_ = answers.Close()
		both.Wait()
	})
	return c.handle
}

func TestCallsEndAsTheParentAnswers(t *testing.T) {
	events := chain("a", "", "b")
	events[1].Path = []byte("a\xffb")
	remote := wired(t, func(_ context.Context, id string, got []Event) error {
		switch diff := cmp.Diff(events, got); {
		case diff != "":
			return errors.New(diff)
		case id == "panics":
			panic("so it does")
		case id == "fails":
			return errors.New("so it does")
		}
		return nil
	})
	var all sync.WaitGroup
	for range 20 {
		for id, want := range map[string]string{"is done": "<nil>", "fails": "so it does", "panics": "panic: so it does"} {
			all.Go(func() {
				if got := fmt.Sprint(recovered(func() error { return remote(t.Context(), id, events) })); got != want {
					t.Errorf("a call that %s: got %s", id, got)
				}
			})
		}
	}
	all.Wait()
}

// recovered returns the error of a call, or its panic as one.
func recovered(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return call()
}

func TestCallThatCameInPartIsNotMade(t *testing.T) {
	var sent strings.Builder
	whole := newSender(&sent)
	for number := range int64(2) {
		if err := whole.send(call{Number: number, ID: "path", Events: chain("a")}); err != nil {
			t.Fatal(err)
		}
	}
	first, second := strings.IndexByte(sent.String(), '\n'), sent.Len()-1
	for cut := range sent.Len() {
		want := 0
		for _, end := range []int{first, second} {
			if cut >= end {
				want++
			}
		}
		made := make(chan string, 2)
		err := answerCalls(t.Context(), strings.NewReader(sent.String()[:cut]), newSender(io.Discard), func(_ context.Context, id string, _ []Event) error {
			made <- id
			return nil
		})
		if err != nil || len(made) != want {
			t.Errorf("of %d bytes: %d calls, %v, want %d", cut, len(made), err, want)
		}
	}
	if err := answerCalls(t.Context(), strings.NewReader(`{"Number":"x"}`), newSender(io.Discard), nil); err == nil {
		t.Error("a call that is no call was read")
	}
}

func TestSlowCallEndsWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newIndex()
		calls, toParent := io.Pipe()
		node := newSender(toParent)
		go func() {
			_ = node.send(call{ID: "path", Events: chain("a")})
			time.Sleep(slowness * 3 / 2)
			_ = node.send(call{ID: "other", Events: chain("a")})
			time.Sleep(slowness / 2)
			_ = toParent.Close()
		}()
		slow := newFaults(0, 0, 1, 1).wrap(x.handle)
		if err := answerCalls(t.Context(), calls, newSender(io.Discard), slow); err != nil {
			t.Fatal(err)
		}
		want := states{map[string]Version{"path": {Mode: "100644", Blob: "a"}}, 1, 0}
		if diff := cmp.Diff(want, stateOf(x)); diff != "" {
			t.Error(diff)
		}
	})
}
