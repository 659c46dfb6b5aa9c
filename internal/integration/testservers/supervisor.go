package testservers

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
)

// supervisor is a shell script that runs beside this process. Its standard input is a pipe whose
// other end only this process holds. So it reads the end of input when this process closes the
// pipe, and also when this process is gone, for whatever reason.
type supervisor struct {
	input  io.Closer
	output bytes.Buffer
	gone   chan struct{}
}

// shell returns the command for a script that a supervisor can run.
func shell(script string, args ...string) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
}

// supervise starts a shell, which has to end at the end of its input.
func supervise(cmd *exec.Cmd) (*supervisor, error) {
	k := &supervisor{gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &k.output, &k.output

	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a shell: %w", err)
	}

	k.input = input
	go func() {
		defer close(k.gone)
		// Its exit status means nothing: its command was killed or ended by itself.
		_ = cmd.Wait()
	}()

	return k, nil
}

// end ends the script and waits until it has gone.
func (k *supervisor) end() {
	k.input.Close()
	<-k.gone
}

// printed returns all output of the script and its command. It waits until the script has ended.
func (k *supervisor) printed() string {
	<-k.gone
	return k.output.String()
}
