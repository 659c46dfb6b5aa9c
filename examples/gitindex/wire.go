package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// With -nodes the index is in one process, the parent, and the servers are in others, the
// nodes. A node's handler sends each call to the parent, by its standard output, and ends
// as the parent answers, by its standard input. All of it is JSON, one value after another.

// settings is a node's first message.
type settings struct {
	Name, Store, Queue string
	Lanes              int
}

// call is one call of a node's handler. Its number is the node's own.
type call struct {
	Number int64
	ID     string
	Events []Event
}

// answer is the outcome of the call with its number: done, failed or panicked. With Stop it is not
// an answer but a request to the node to finish what runs, and to end.
type answer struct {
	Number           int64
	Failed, Panicked string
	Stop             bool
}

// sender sends values, one at a time. It may be used by many goroutines at once.
type sender struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newSender(out io.Writer) *sender { return &sender{out: json.NewEncoder(out)} }

func (s *sender) send(value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(value)
}

// answerCalls makes each call that a node sends, many at once, and answers it. It returns
// when the node sends no more and the calls have ended. A call that came only in part,
// since its node died, is not made; the context of those that run ends.
func answerCalls(ctx context.Context, in io.Reader, out *sender, handle handler) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(errNodeGone)
	for calls := json.NewDecoder(in); ; {
		var c call
		err := calls.Decode(&c)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("read a call: %w", err)
		}
		running.Go(func() {
			_ = out.send(c.perform(ctx, handle)) // A node that is gone waits for no answer.
		})
	}
}

// errNodeGone is the cause with which the context of a call ends if its node is gone.
var errNodeGone = errors.New("the node that made the call is gone")

func (c call) perform(ctx context.Context, handle handler) (a answer) {
	a.Number = c.Number
	defer func() {
		if p := recover(); p != nil {
			a.Panicked = fmt.Sprint(p)
		}
	}()
	if err := handle(ctx, c.ID, c.Events); err != nil {
		a.Failed = err.Error()
	}
	return a
}

// caller is a node's side: its handle is a handler that the parent carries out.
type caller struct {
	out *sender

	mu       sync.Mutex
	last     int64
	answered map[int64]chan answer
}

func newCaller(out io.Writer) *caller {
	return &caller{out: newSender(out), answered: map[int64]chan answer{}}
}

// handle fails or panics as the parent's handler did. It waits for the answer also when its
// context has ended, since the parent may be at it.
func (c *caller) handle(_ context.Context, id string, events []Event) error {
	number, answered := c.expect()
	if err := c.out.send(call{number, id, events}); err != nil {
		return fmt.Errorf("send a call: %w", err)
	}
	switch a := <-answered; {
	case a.Panicked != "":
		panic(a.Panicked)
	case a.Failed != "":
		return errors.New(a.Failed)
	}
	return nil
}

// expect returns the number of a new call and the channel for its answer.
func (c *caller) expect() (number int64, answered <-chan answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	one := make(chan answer, 1)
	c.answered[c.last] = one
	return c.last, one
}

// receive passes answers to the calls that wait for them, and calls stop when the parent requests
// that. It returns why no more answers come: the parent is gone.
func (c *caller) receive(in *json.Decoder, stop func()) error {
	for {
		var a answer
		if err := in.Decode(&a); err != nil {
			return fmt.Errorf("read an answer: %w", err)
		}
		if a.Stop {
			stop()
			continue
		}
		c.mu.Lock()
		one := c.answered[a.Number]
		delete(c.answered, a.Number)
		c.mu.Unlock()
		if one == nil {
			return fmt.Errorf("an answer to call %d, which nobody waits for", a.Number)
		}
		one <- a
	}
}
