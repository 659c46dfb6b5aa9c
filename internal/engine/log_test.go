package engine_test

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// logBuffer keeps a node's log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// count is how many times a text was logged.
func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tail is the last lines.
func (l *logBuffer) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// lines are those that have all the texts, without their time.
func (l *logBuffer) lines(texts ...string) (found []string) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
			found = append(found, line)
		}
	}
	return found
}

// doings counts, for each kind of loop, the lines that have a text.
func (l *logBuffer) countByLoop(text string) map[string]int {
	counts := make(map[string]int)
	for _, line := range l.lines(text) {
		_, doing, _ := strings.Cut(line, "doing=")
		doing, _, _ = strings.Cut(strings.TrimPrefix(doing, `"`), " ")
		counts[doing]++
	}
	return counts
}

// wantLines checks how many lines have all the texts, and returns them.
func (n *node) wantLines(count int, texts ...string) []string {
	n.Helper()
	lines := n.log.lines(texts...)
	if len(lines) != count {
		n.Errorf("at %v: %d lines with %q, want %d:\n%s",
			n.elapsed(), len(lines), texts, count, strings.Join(lines, "\n"))
	}
	return lines
}
