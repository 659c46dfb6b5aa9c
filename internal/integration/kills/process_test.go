package kills_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/ports/storekit"
)

// process is a process that a test has started. It runs this program or another version of it.
type process struct {
	cmd *exec.Cmd
	out strings.Builder
	j   journal
}

// startProcess starts a process with the work of that name in workers, on a store.
func startProcess(t *testing.T, name, url string, j journal) *process {
	t.Helper()
	return startProgram(t, os.Args[0], name, url, j)
}

// startProgram is startProcess with the program to run, this one or another version of it, and
// additional environment variables.
func startProgram(t *testing.T, program, name, url string, j journal, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), program), j: j}
	p.cmd.Env = append(append(os.Environ(), env...), workerVariable+"="+name, storeVariable+"="+url,
		journalVariable+"="+j.path)
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

// interrupt stops the process with a signal, and waits until it has ended.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if p.wasKilled(t) {
		t.Fatal("the process did not end by itself")
	}
}

// wasKilled waits until the process has ended, and returns whether a signal ended it, which is
// then added to the journal. It ends the test if the process has failed.
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

// journalWorker is a server that does some work for each job, and keeps a journal of it. It
// ends by an interrupt.
func journalWorker(queue *skein.Queue[int], options skein.ServerOptions, work func()) error {
	return serveWithJournal(options, func(j journal) skein.Handler {
		return queue.JobHandler(func(ctx context.Context, job *skein.Job[int]) error {
			token, _ := skein.Fence(ctx)
			line := journalLine{what: lineBegan, pid: os.Getpid(), id: job.ID, token: token, recoveries: job.Recoveries}
			j.write(line)
			work()
			line.what = lineEnded
			j.write(line)
			return nil
		})
	})
}

// serveWithJournal runs a server with a handler that writes to the journal, until an interrupt.
func serveWithJournal(options skein.ServerOptions, handler func(j journal) skein.Handler) error {
	return serveThrough(options, func(journal) storekit.Interceptor { return nil }, handler)
}

// serveThrough is serveWithJournal with an interceptor of the calls of the store. An interceptor that
// is nil leaves the store as it is.
func serveThrough(
	options skein.ServerOptions,
	around func(j journal) storekit.Interceptor,
	handler func(j journal) skein.Handler,
) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	store, closeStore, err := backends.Open(ctx, os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()

	j := journal{os.Getenv(journalVariable)}
	options.Logger = slog.New(slog.DiscardHandler)
	options.OnStart = func(context.Context) error {
		j.write(journalLine{what: lineReady, pid: os.Getpid()})
		return nil
	}
	return skein.NewServer(storekit.Intercept(store, around(j)), options, handler(j)).Run(ctx)
}
