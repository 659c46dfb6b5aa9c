package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/command"
)

// Event is one changed file of one commit: the payload. A version is a mode and a hash, and "" if
// the path holds nothing.
type Event struct {
	// Position is the change's place in the history, from 1.
	Position int64  `json:"position"`
	Commit   string `json:"commit"`
	Old      string `json:"old,omitempty"`
	New      string `json:"new,omitempty"`
}

// pathID returns the id of a path. A path can be any bytes; an id is UTF-8, has no control
// characters, and is not longer than core.MaxIDBytes. Another path gets its hash.
func pathID(path string) string {
	if len(path) <= core.MaxIDBytes && utf8.ValidString(path) && strings.IndexFunc(path, unicode.IsControl) < 0 {
		return path
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(path)))
}

// repository is a git repository at the commit that HEAD named when it was opened.
type repository struct {
	dir, head string
}

func openRepository(ctx context.Context, dir string) (repository, error) {
	r := repository{dir: dir}
	err := r.git(ctx, func(out io.Reader) error {
		head, err := io.ReadAll(out)
		r.head = string(bytes.TrimSpace(head))
		return err
	}, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return r, fmt.Errorf("name a git repository with commits by -repo: %w", err)
	}
	return r, nil
}

// log calls each with the changes of the first-parent history, oldest first. The settings undo what
// a user's configuration could add to the output.
func (r repository) log(ctx context.Context, each func(path string, e Event) error) error {
	return r.git(ctx, func(out io.Reader) error {
		return readLog(out, each)
	}, "-c", "log.showSignature=false", "-c", "diff.relative=false",
		"log", "--first-parent", "--diff-merges=first-parent", "--raw", "--no-abbrev", "--reverse", "--root",
		"--no-renames", "-z", "--format=commit %H", "--ignore-submodules=none", r.head, "--")
}

// readLog reads records that end with NUL: for each commit one with its hash, then two for each of
// its changes, such as ":100644 100755 OLDHASH NEWHASH M" and the path. A path can look like any
// other record, so only its place identifies it.
func readLog(out io.Reader, each func(path string, e Event) error) error {
	records := newRecords(out)
	e := Event{}
	for records.Scan() {
		record := strings.TrimPrefix(records.Text(), "\n")
		if hash, ok := strings.CutPrefix(record, "commit "); ok {
			e.Commit = hash
			continue
		}

		fields := strings.Split(strings.TrimPrefix(record, ":"), " ")
		if len(fields) != 5 || !records.Scan() {
			return fmt.Errorf("git log printed an unknown record in commit %s: %q", e.Commit, record)
		}

		e.Position++
		e.Old, e.New = version(fields[0], fields[2]), version(fields[1], fields[3])
		if err := each(records.Text(), e); err != nil {
			return err
		}
	}
	return records.Err()
}

func version(mode, hash string) string {
	if strings.Trim(mode, "0") == "" {
		return ""
	}
	return mode + " " + hash
}

// files returns the version of each file of HEAD, by id.
func (r repository) files(ctx context.Context) (map[string]string, error) {
	files := map[string]string{}
	err := r.git(ctx, func(out io.Reader) error {
		records := newRecords(out)
		for records.Scan() {
			about, path, _ := strings.Cut(records.Text(), "\t")
			fields := strings.Split(about, " ")
			if len(fields) != 3 {
				return fmt.Errorf("git ls-tree printed an unknown record: %q", records.Text())
			}
			files[pathID(path)] = version(fields[0], fields[2])
		}
		return records.Err()
	}, "ls-tree", "-r", "-z", "--full-tree", r.head)
	return files, err
}

// newRecords returns a scanner of records that end with NUL.
func newRecords(out io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	s.Split(func(data []byte, atEOF bool) (advance int, record []byte, err error) {
		if end := bytes.IndexByte(data, 0); end >= 0 {
			return end + 1, data[:end], nil
		}
		if atEOF && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	return s
}

// git runs git and reads its output while it comes.
func (r repository) git(ctx context.Context, read func(io.Reader) error, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	cmd.Stderr = &stderr
	command.Shield(cmd)

	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}

	// An error of read ends git, whose own error would then hide the cause.
	if err := read(out); err != nil {
		cancel()
		_ = cmd.Wait()
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
