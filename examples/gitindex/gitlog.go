package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errMalformed reports a log that git can't have written.
var errMalformed = errors.New("malformed git log")

// Version is what a path holds at a commit. The zero value is nothing.
type Version struct {
	// Mode is git's, in octal: 160000 is a submodule.
	Mode string `json:"mode,omitempty"`
	// Blob is the object's hash; a submodule's is its commit.
	Blob string `json:"blob,omitempty"`
}

// String returns the version as people read it.
func (v Version) String() string {
	if v == (Version{}) {
		return "nothing"
	}
	return v.Mode + " " + v.Blob
}

// change is one file that a commit changed against its first parent.
type change struct {
	Commit string
	// Kind is A for added, D for deleted, M for modified or T for another type.
	Kind string
	// Path is any bytes but NUL.
	Path     string
	Old, New Version
}

// logFormat is the --format of the log that logReader reads.
const logFormat = "commit %H"

const commitPrefix = "commit "

// maxRecord is the length of the longest record that is read. No path is longer.
const maxRecord = 1 << 20

// logReader reads the output of
//
//	git log --raw --no-abbrev --no-renames -z --format="commit %H"
//
// as it comes. In it every record ends with NUL: for each commit one with its hash, then for each
// of its changes two, the second being the path. The first change of a commit has a newline in
// front. A path can look like any other record, so only its position identifies it.
type logReader struct {
	records *bufio.Scanner
	// read counts records, for messages.
	read   int64
	commit string
	// first is set in front of a commit's first change.
	first   bool
	commits int64
}

func newLogReader(r io.Reader) *logReader {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxRecord)
	s.Split(splitRecords)
	return &logReader{records: s}
}

// splitRecords is a bufio.SplitFunc for records that end with NUL.
func splitRecords(data []byte, atEOF bool) (advance int, record []byte, err error) {
	if end := bytes.IndexByte(data, 0); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, fmt.Errorf("%w: it ends inside a record: %.80q", errMalformed, data)
	}
	return 0, nil, nil
}

// next returns the next change, or io.EOF after the last. Any other error is
// final.
func (l *logReader) next() (change, error) {
	for {
		record, err := l.record()
		if err != nil {
			return change{}, err
		}
		hash, isCommit := strings.CutPrefix(record, commitPrefix)
		if !isCommit {
			return l.change(record)
		}
		if !isHash(hash) {
			return change{}, l.malformed("no commit's hash", record)
		}
		l.commit, l.first = hash, true
		l.commits++
	}
}

// record returns the next one, or io.EOF.
func (l *logReader) record() (string, error) {
	if l.records.Scan() {
		l.read++
		return l.records.Text(), nil
	}
	switch err := l.records.Err(); {
	case err == nil:
		return "", io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return "", fmt.Errorf("%w: record %d is longer than %d bytes", errMalformed, l.read+1, maxRecord)
	default:
		return "", err
	}
}

// change reads the path that belongs to a record like
// ":100644 100755 OLDHASH NEWHASH M".
func (l *logReader) change(record string) (change, error) {
	raw := record
	if l.first {
		raw = strings.TrimPrefix(raw, "\n")
		l.first = false
	}
	raw, ok := strings.CutPrefix(raw, ":")
	fields := strings.Split(raw, " ")
	if !ok || l.commit == "" || len(fields) != 5 {
		return change{}, l.malformed("neither a commit nor a change of one", record)
	}
	c := change{Commit: l.commit, Kind: fields[4]}
	var okOld, okNew bool
	c.Old, okOld = l.version(fields[0], fields[2])
	c.New, okNew = l.version(fields[1], fields[3])
	if !okOld || !okNew || !possible(c) {
		return change{}, l.malformed("no change that can be replayed", record)
	}
	path, err := l.record()
	if errors.Is(err, io.EOF) || err == nil && path == "" {
		return change{}, l.malformed("a change without a path", record)
	}
	c.Path = path
	return c, err
}

// version returns the version of a mode and a hash; zeros mean nothing.
func (l *logReader) version(mode, hash string) (Version, bool) {
	if !isMode(mode) || !isHash(hash) || len(hash) != len(l.commit) {
		return Version{}, false
	}
	if strings.Trim(mode, "0") == "" && strings.Trim(hash, "0") == "" {
		return Version{}, true
	}
	return Version{Mode: mode, Blob: hash}, strings.Trim(hash, "0") != "" && strings.Trim(mode, "0") != ""
}

// possible reports whether --no-renames can print the kind of a change and whether it fits the
// rest of the change.
func possible(c change) bool {
	nothing := Version{}
	switch c.Kind {
	case "A":
		return c.Old == nothing && c.New != nothing
	case "D":
		return c.Old != nothing && c.New == nothing
	case "M", "T":
		return c.Old != nothing && c.New != nothing && c.Old != c.New
	}
	return false
}

func (l *logReader) malformed(what, record string) error {
	return fmt.Errorf("%w: record %d, in commit %q, is %s: %.200q", errMalformed, l.read, l.commit, what, record)
}

// isHash reports whether s is an object's full SHA-1 or SHA-256 name.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// isMode reports whether s is a mode as git prints it.
func isMode(s string) bool {
	return len(s) == 6 && strings.Trim(s, "01234567") == ""
}
