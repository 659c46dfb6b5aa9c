package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/internal/command"
)

// errNoCommits is a repository in which nothing was committed yet.
var errNoCommits = errors.New("no commits yet")

// repository is a git repository, bare or not, at the commit that HEAD named
// when it was opened: a HEAD that moves later changes nothing.
type repository struct {
	dir  string
	head string
	// commits is the length of the first-parent history.
	commits int64
	// shallow reports that the history was cut off: it begins with a commit that
	// adds all files.
	shallow bool
}

// openRepository finds the repository that dir is in. It returns errNoCommits
// for an empty one.
func openRepository(ctx context.Context, dir string) (repository, error) {
	r := repository{dir: dir}
	if _, err := exec.LookPath("git"); err != nil {
		return r, fmt.Errorf("install git, or put it into the PATH: %w", err)
	}
	if _, err := r.git(ctx, "rev-parse", "--git-dir"); err != nil {
		return r, fmt.Errorf("name a git repository with -repo: %w", err)
	}
	var err error
	if r.head, err = r.git(ctx, "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
		return r, r.noHead(ctx, err)
	}
	count, err := r.git(ctx, "rev-list", "--first-parent", "--count", r.head)
	if err != nil {
		return r, err
	}
	if r.commits, err = strconv.ParseInt(count, 10, 64); err != nil {
		return r, fmt.Errorf("git rev-list --count: %w", err)
	}
	shallow, err := r.git(ctx, "rev-parse", "--is-shallow-repository")
	r.shallow = shallow == "true"
	return r, err
}

// noHead returns why HEAD names no commit: the repository has none, or only others.
func (r repository) noHead(ctx context.Context, cause error) error {
	other, err := r.git(ctx, "rev-list", "--all", "--max-count=1")
	switch {
	case err != nil:
		return fmt.Errorf("%w (%w)", cause, err)
	case other == "":
		return errNoCommits
	}
	return fmt.Errorf("HEAD names no commit, though there are some: point it at a branch that exists: %w", cause)
}

// log calls each with the changes of the first-parent history, oldest first.
//
// The settings and the last two options undo what a user's configuration, or the
// .gitmodules of the work tree, could take from the log or add to it.
func (r repository) log(ctx context.Context, each func(c change, commits int64) error) error {
	return r.stream(ctx, func(out io.Reader) error {
		log := newLogReader(out)
		for {
			c, err := log.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := each(c, log.commits); err != nil {
				return err
			}
		}
	}, "-c", "log.showSignature=false", "-c", "log.diffMerges=first-parent", "-c", "diff.relative=false",
		"log", "--first-parent", "-m", "--raw", "--no-abbrev", "--reverse", "--root", "--no-renames", "-z",
		"--format="+logFormat, "--ignore-submodules=none", r.head, "--")
}

// tree calls each with the files of HEAD.
func (r repository) tree(ctx context.Context, each func(path string, v Version)) error {
	return r.stream(ctx, func(out io.Reader) error {
		return readTree(out, each)
	}, "ls-tree", "-r", "-z", "--full-tree", r.head)
}

// git returns the output of a command that prints one line.
func (r repository) git(ctx context.Context, args ...string) (string, error) {
	var out []byte
	err := r.stream(ctx, func(stdout io.Reader) (err error) {
		out, err = io.ReadAll(stdout)
		return err
	}, args...)
	return string(bytes.TrimSpace(out)), err
}

// stream runs git and reads its output while it comes. An error of read ends git. The error is the
// cause of the context if that has ended, otherwise the message that git prints, and otherwise the
// error of read.
func (r repository) stream(parent context.Context, read func(io.Reader) error, args ...string) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = environment()
	cmd.WaitDelay = time.Minute // only for a grandchild that keeps the pipe
	command.Shield(cmd)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(stdout)
	if readErr != nil {
		cancel()
	}
	err = cmd.Wait()
	switch exit := (*exec.ExitError)(nil); {
	case parent.Err() != nil:
		return context.Cause(parent)
	case errors.As(err, &exit) && exit.Exited():
		complaint := strings.TrimPrefix(strings.TrimSpace(stderr.String()), "fatal: ")
		return fmt.Errorf("git says: %s (%w)", complaint, err)
	case readErr != nil:
		return readErr
	}
	return err
}

// environment returns this process's environment, with English messages, and without the variables
// that lead git to another repository than the named one, such as inside a hook.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE",
			"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_EXTERNAL_DIFF":
		default:
			env = append(env, v)
		}
	}
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
}
