package integration_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/integration/testservers"
)

// process is one that a test has started, which is this program again.
type process struct {
	cmd *exec.Cmd
	out strings.Builder
	j   journal
}

// startProcess starts a process that does what the name says in workers, on a store.
func startProcess(t *testing.T, name, url string, j journal) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0]), j: j}
	p.cmd.Env = append(os.Environ(), workerVariable+"="+name, storeVariable+"="+url, journalVariable+"="+j.path)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process with SIGKILL.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if !p.wasKilled(t) {
		t.Fatal("the process has ended before it was killed")
	}
}

// interrupt asks the process to stop, and waits until it has.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if p.wasKilled(t) {
		t.Fatal("the process did not end by itself")
	}
}

// wasKilled waits until the process has ended, and returns whether a signal ended it, which
// the journal then says. It ends the test if the process has failed.
func (p *process) wasKilled(t *testing.T) bool {
	t.Helper()
	err := p.cmd.Wait()
	if err == nil {
		return false
	}
	if p.cmd.ProcessState.Exited() {
		t.Fatalf("the process: %v\n%s", err, &p.out)
	}
	p.j.write(journalLine{what: lineDied, pid: p.pid()})
	return true
}

// storeURLs returns for each kind of store what makes the URL of an empty one.
func storeURLs(t *testing.T) map[string]func(*testing.T) (url string) {
	t.Helper()
	redis, postgres := testservers.Redis(t), testservers.Postgres(t)
	return map[string]func(*testing.T) string{
		"Redis": func(t *testing.T) string {
			return storeURL(redis) + "?prefix=" + testservers.Prefix(t, redis)
		},
		"Postgres": func(t *testing.T) string {
			return postgresStoreURL(t, testservers.Schema(t, postgres))
		},
	}
}
