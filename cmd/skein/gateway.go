package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
)

// minTokenBytes is the minimum length of a token in a file of tokens.
const minTokenBytes = 16

// allQueues is written in a file of tokens in place of the names of queues.
const allQueues = "*"

// pushers are the programs that may push through a gateway, by the hashes of their tokens. So a
// look-up takes no longer for a token that is nearly right.
type pushers map[[sha256.Size]byte]pusher

type pusher struct {
	name   string
	queues []string
}

// readPushers reads a file of tokens: each line has the name of a program, its token, and the
// queues that it may push to. Empty lines and those that begin with # are skipped. Errors contain no
// token.
func readPushers(path string) (pushers, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: --push-tokens: %w", errUsage, err)
	}

	list, names := pushers{}, map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}

		wrong := func(format string, args ...any) error {
			return fmt.Errorf("%w: %s, line %d: "+format, append([]any{errUsage, path, number}, args...)...)
		}
		if len(fields) < 3 {
			return nil, wrong("%d words; write the name of a program, its token, and the queues that it may push to, or %s",
				len(fields), allQueues)
		}

		name, token := fields[0], sha256.Sum256([]byte(fields[1]))
		switch _, taken := list[token]; {
		case len(fields[1]) < minTokenBytes:
			return nil, wrong("the token of %s has fewer than %d bytes; make one with openssl rand -hex 32",
				quoted(name), minTokenBytes)
		case names[name]:
			return nil, wrong("the program %s occurs twice; name all its queues in one line", quoted(name))
		case taken:
			return nil, wrong("the token of %s is that of another program, too; give each its own", quoted(name))
		}
		names[name], list[token] = true, pusher{name, fields[2:]}
	}

	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUsage, path, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: %s has no token; write the name of a program, its token and its queues into a line",
			errUsage, path)
	}
	return list, nil
}

// authorize permits pushes of the programs to their queues, and nothing else.
func (p pushers) authorize(r *http.Request, a httpapi.Action) error {
	from, known := p[sha256.Sum256([]byte(tokenOf(r)))]
	switch {
	case !known:
		return httpapi.ErrUnauthenticated
	case a.Verb != httpapi.VerbPush || !from.may(a.Queue):
		return fmt.Errorf("%s may not %s to %s", quoted(from.name), a.Verb, quoted(a.Queue))
	}
	return nil
}

func (p *pusher) may(queue string) bool {
	return slices.Contains(p.queues, queue) || slices.Contains(p.queues, allQueues)
}

// gateway returns the handler of a server that takes pushes and nothing else.
func (s *serving) gateway(i *inspect.Inspector, token string) (http.Handler, error) {
	if s.readOnly || s.metrics {
		return nil, fmt.Errorf("%w: --push together with --read-only or --metrics; a gateway takes pushes alone", errUsage)
	}

	options := s.apiOptions()
	switch {
	case s.tokens != "":
		from, err := readPushers(s.tokens)
		if err != nil {
			return nil, err
		}
		options.Authorize = from.authorize
	case token != "":
		options.Authorize = func(r *http.Request, _ httpapi.Action) error { return allowed(r, token) }
	}

	api, err := httpapi.New(i, options)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}

	mux := http.NewServeMux()
	mux.Handle("POST /api/v1/queues/{queue}/jobs", api)
	mux.Handle("GET /livez", httpapi.Livez())
	mux.Handle("GET /readyz", httpapi.Readyz(i, httpapi.HealthOptions{}))
	return mux, nil
}
