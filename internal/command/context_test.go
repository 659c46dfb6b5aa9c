//go:build unix

package command_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/skeinq/skein/internal/command"
)

// asCommand makes the test binary a command that waits for signals, since a
// second TERM ends the process.
const asCommand = "SKEIN_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		waitForSignals()
		return
	}
	os.Exit(m.Run())
}

// waitForSignals prints what it sees; once drained it waits for ever.
func waitForSignals() {
	ctx, stop := command.Context(context.Background())
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("cause:", context.Cause(ctx))
	select {}
}

// process is a running command whose output is read line by line.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
	err *bufio.Reader
}

func start(t *testing.T) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asCommand+"=1")

	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })

	p := &process{t: t, cmd: cmd, out: bufio.NewReader(stdout), err: bufio.NewReader(stderr)}
	p.expect(p.out, "ready")
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// expect reads lines until one contains the text.
func (p *process) expect(from *bufio.Reader, text string) {
	p.t.Helper()
	for {
		line, err := from.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			p.t.Fatalf("no line with %q: %v", text, err)
		}
	}
}

func TestFirstSignalDrainsSecondEnds(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			p := start(t)
			p.signal(s)
			p.expect(p.out, "cause: received "+s.String())
			p.signal(s)
			_, _ = io.Copy(io.Discard, p.err)
			var exit *exec.ExitError
			if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(s) {
				t.Errorf("second %v: %v, want exit status %d", s, err, 128+int(s))
			}
		})
	}
}

func TestDumpGoesOn(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGTTIN} {
		t.Run(s.String(), func(t *testing.T) {
			p := start(t)
			for range 2 {
				p.signal(s)
				p.expect(p.err, "goroutine 1 [")
			}
			p.signal(syscall.SIGTERM)
			p.expect(p.out, "cause: received terminated")
		})
	}
}

func TestStopCancels(t *testing.T) {
	ctx, stop := command.Context(t.Context())
	stop()
	stop()
	if ctx.Err() == nil {
		t.Error("the context outlives stop")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		t.Errorf("cause %v, want %v", cause, context.Canceled)
	}
}
