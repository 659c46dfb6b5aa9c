package exchange

import (
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Call is a script to run, or a plain command that reads.
type Call struct {
	Script *Script
	// Command is the name of the plain command of a call without a script.
	Command string
	Keys    []any // texts
	Args    []any
	// NoRetry forbids the client to repeat the call after an error of unknown outcome.
	NoRetry bool
	// Size is the number of bytes in a push's entries, and Entries their number.
	Size, Entries int
	// Durable calls wait for replicas, if the store has WaitReplicas.
	Durable bool
}

// Outcome is the result of a call.
type Outcome struct {
	Value any
	Err   error
}

// noRetryCmd is a command that the client does not repeat.
type noRetryCmd struct{ *goredis.Cmd }

// NoRetry implements goredis.Cmder.
func (noRetryCmd) NoRetry() bool { return true }

// Do runs one call. This is the whole road of a call that its server carries out: a command there,
// and its reply back. The command has the whole script if the server does not know the script.
// Everything else branches off to [Link.Run]: large calls, calls that wait for replicas, and calls
// that the server refused without running them.
//
// Do returns when the context ends, whatever the server does.
func (s *Link) Do(ctx context.Context, c Call) (any, error) {
	if c.Size >= largePush || s.replicas > 0 && c.Durable {
		return s.runOne(ctx, c)
	}

	cmd, ended := Await(ctx, s, func() *goredis.Cmd {
		cmd := s.process(ctx, &c, false)
		if goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmd = s.process(ctx, &c, true)
		}
		return cmd
	})
	if ended != nil {
		return nil, ended
	}

	if value, err := cmd.Result(); err == nil {
		return value, nil
	}
	return s.afterFault(ctx, c, cmd.Err())
}

// Await returns the result of do, or the context's error if the context ends first. In the latter
// case do continues in its goroutine, and its result is dropped.
func Await[T any](ctx context.Context, s *Link, do func() T) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, Translate(ctx, err)
	}
	if ctx.Done() == nil {
		return do(), nil
	}

	began, done := time.Now(), make(chan T, 1)
	s.Workers.Do(func() { done <- do() })
	select {
	case v := <-done:
		return v, nil
	case <-ctx.Done():
		s.connections.gaveUp(ctx, began)
		return zero, Translate(ctx, ctx.Err())
	}
}

// process sends a call by itself, and returns its command with the reply.
func (s *Link) process(ctx context.Context, c *Call, full bool) *goredis.Cmd {
	cmd := command(ctx, c, full)
	_ = s.client.Process(ctx, c.cmder(cmd)) // the command has the error too
	return cmd
}

// afterFault returns the result of a call whose first try has failed. The call is sent again only
// if no server has run it.
func (s *Link) afterFault(ctx context.Context, c Call, err error) (any, error) {
	switch {
	case errors.Is(err, errDropped), Retryable(err):
		return s.runOne(ctx, c)
	case s.OnCluster() && notDialled(err): // another server may have the slot by now
		return s.runOne(ctx, c)
	}
	s.NoteMoves(ctx, err)
	return nil, Translate(ctx, c.Script.Locate(err))
}

// runOne runs one call as Run does, and returns when the context ends.
func (s *Link) runOne(ctx context.Context, c Call) (any, error) {
	outcomes, ended := Await(ctx, s, func() []Outcome { return s.Run(ctx, []Call{c}) })
	if ended != nil {
		return nil, ended
	}
	return outcomes[0].Value, outcomes[0].Err
}

// cmder returns the call's command in the form that the client runs.
func (c *Call) cmder(cmd *goredis.Cmd) goredis.Cmder {
	if c.NoRetry {
		return noRetryCmd{cmd}
	}
	return cmd
}

// command returns EVALSHA, or EVAL with the full text, or the plain command.
func command(ctx context.Context, c *Call, full bool) *goredis.Cmd {
	if c.Script == nil {
		args := make([]any, 1, 1+len(c.Keys)+len(c.Args))
		args[0] = c.Command
		cmd := goredis.NewCmd(ctx, append(append(args, c.Keys...), c.Args...)...)
		cmd.SetFirstKeyPos(1)
		return ofOneServer(cmd)
	}

	args := make([]any, 3, 3+len(c.Keys)+len(c.Args))
	args[0], args[1], args[2] = "evalsha", c.Script.SHA, len(c.Keys)
	if full {
		args[0], args[1] = "eval", c.Script.Text
	}
	args = append(args, c.Keys...)
	cmd := goredis.NewCmd(ctx, append(args, c.Args...)...)
	cmd.SetFirstKeyPos(3)
	return ofOneServer(cmd)
}

// ofOneServer returns a command as one whose keys are all in one slot. For any other command, the
// client of a Cluster needs the positions of the keys. It asks any server for the list of all
// commands, even a hanging one, and has every call wait for that.
func ofOneServer[C goredis.Cmder](cmd C) C {
	cmd.SetStepCount(1)
	return cmd
}
