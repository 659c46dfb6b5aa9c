package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// nodes runs servers in processes of their own, and kills each of them from time to time.
type nodes struct {
	count int
	// every is how long a process lives before it is killed and another one takes its place. 0 means
	// that no process is killed.
	every time.Duration
	// settings are those of every process, but for its name.
	settings settings
	// handle is called in this process for each call of a handler in the others.
	handle handler
	// stderr gets what the processes log.
	stderr io.Writer
	kills  atomic.Int64
}

// run returns when ctx has ended and all processes have drained, or when one has
// ended by itself, with its error.
func (n *nodes) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, n.count)
	var all sync.WaitGroup
	for i := range n.count {
		all.Go(func() {
			if err := n.keep(ctx, i); err != nil {
				errs[i] = fmt.Errorf("node %d: %w", i+1, err)
				cancel(errs[i])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// keep runs one process after another in the i-th place. The first ones die earlier, the i-th
// by its share of the interval, so that at no time all are killed.
func (n *nodes) keep(ctx context.Context, i int) error {
	s := n.settings
	s.Name = fmt.Sprint("gitindex-", i+1)
	for lifetime := n.every * time.Duration(i+1) / time.Duration(n.count); ; lifetime = n.every {
		killed, err := n.runProcess(ctx, s, lifetime)
		if err != nil || !killed {
			return err
		}
		n.kills.Add(1)
	}
}

// runProcess runs a process until ctx ends and it has drained, or kills it when its lifetime,
// if it has any, is over.
func (n *nodes) runProcess(ctx context.Context, s settings, lifetime time.Duration) (killed bool, err error) {
	p, err := startNode(s, n.stderr)
	if err != nil {
		return false, err
	}
	answered := make(chan error, 1)
	go func() { answered <- answerCalls(ctx, p.calls, p.answers, n.handle) }()
	var over <-chan time.Time
	if lifetime > 0 {
		timer := time.NewTimer(lifetime)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		_ = p.answers.send(answer{Stop: true}) // A process that has ended needs no request; end returns how it went.
		return false, p.end(<-answered)
	case <-over:
		if err := p.cmd.Process.Kill(); err == nil {
			<-answered
			_ = p.cmd.Wait() // It reports that the process was killed.
			return true, nil
		}
		return false, p.end(<-answered)
	case err := <-answered:
		if err := p.end(err); err != nil {
			return false, err
		}
		return false, errors.New("it ended by itself")
	}
}

// nodeProcess is a running process.
type nodeProcess struct {
	cmd     *exec.Cmd
	calls   io.Reader
	answers *sender
}

// asNode is set in the environment of a process that is a node: see [runNode].
const asNode = "SKEIN_GITINDEX_NODE"

// startNode starts this program again, as a node.
func startNode(s settings, stderr io.Writer) (*nodeProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), asNode+"=1")
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &nodeProcess{cmd: cmd, calls: out, answers: newSender(in)}
	_ = p.answers.send(s) // A process that can't be reached has ended, and its exit status shows how.
	return p, nil
}

// end waits until a process has ended that sends no more, and returns what was wrong. A process
// whose calls could not be read is killed.
func (p *nodeProcess) end(unreadable error) error {
	if unreadable != nil {
		_ = p.cmd.Process.Kill() // It may have ended.
	}
	return errors.Join(unreadable, p.cmd.Wait())
}
