package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

// callOn runs the command on a store, and returns its exit code and its output.
func callOn(t *testing.T, store ports.ShardStore, env map[string]string, args ...string) (code int, out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := process{
		stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		env: func(name string) string { return env[name] },
		connect: func(_ context.Context, url string) (*backends.Backend, error) {
			if url == "memory://elsewhere" {
				store = memory.New(memory.Options{})
			}
			return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
		},
	}
	code = p.run(t.Context(), args)
	return code, stdout.String(), stderr.String()
}

// Shells complete the names of queues, servers and groups of the store. A store that does not
// answer completes nothing and prints nothing.
func TestShellsCompleteWhatTheStoreKnows(t *testing.T) {
	store := skeintest.NewFailingStore(memory.New(memory.Options{}))
	declaredIn(t, store, "orders", "mails")
	_, err := store.Announce(t.Context(), ports.AnnounceRequest{
		Node: ports.Node{Owner: "o", Name: "web-1", Queues: []string{"orders"}},
		TTL:  1 << 40,
	})
	must(t, err)

	letters := []core.DeadLetter{{ID: "a", Failures: core.Failures{{Text: "boom"}}, Group: "boom", Payloads: []core.Payload{{Data: []byte("x")}}}}
	_, err = inspect.New(store, inspect.Options{}).Import(t.Context(), "orders",
		func(yield func(core.DeadLetter, error) bool) { yield(letters[0], nil) },
		nil)
	must(t, err)

	q := skein.NewQueue[int]("mails", skein.QueueOptions[int]{Shards: 1})
	for _, name := range []string{"nightly", "bill"} {
		must(t, q.Schedule(t.Context(), skein.NewClient(store, skein.ClientOptions{}),
			name, skein.Interval(time.Hour), "a", 1))
	}

	env := map[string]string{"SKEIN_URL": "memory://"}
	for line, want := range map[string]string{
		"schedule pause ":                    "mails orders",
		"schedule pause mails ":              "bill nightly",
		"schedule next mails n":              "nightly",
		"schedule ls mails --name ":          "bill nightly",
		"schedule rm mails bill ":            "",
		"schedule backfill mails bill --to ": "",
		"job move orders --to ":              "mails", // those that are not named already
		"queue pause ":                       "mails orders",
		"job ls o":                           "orders",
		"stats orders ":                      "mails",
		"node drain ":                        "web-1",
		"morgue rm orders --group ":          "boom",
		"stats -o j":                         "table wide json jsonl csv", // the shell takes those that fit
		"queue pause orders ":                "",
		"queue pause --url x --url-file y ":  "",
	} {
		for _, away := range []bool{false, true} {
			store.Heal()
			if away {
				store.Fail(skeintest.Fault{})
				if !strings.Contains(line, "-o") {
					want = ""
				}
			}

			words := strings.Fields(line)
			if strings.HasSuffix(line, " ") {
				words = append(words, "")
			}

			code, out, said := callOn(t, store, env, append([]string{"__complete"}, words...)...)
			var names []string
			for name := range strings.FieldsSeq(out) {
				if !strings.HasPrefix(name, ":") {
					names = append(names, name)
				}
			}

			if got := strings.Join(names, " "); code != 0 || got != want || strings.Contains(said, "skein:") {
				t.Errorf("%q, away %v: %q, want %q; exit code %d: %s", line, away, got, want, code, said)
			}
		}
	}
}

// The script completes in a bash without the package bash-completion, also words that bash splits:
// at a colon and at =.
func TestBashCompletesWithoutItsPackage(t *testing.T) {
	program, err := os.Executable()
	must(t, err)
	file := filepath.Join(t.TempDir(), "profiles")
	must(t, os.WriteFile(file, []byte("blue memory://\ngreen memory://\n"), 0o600))

	for _, tt := range []struct {
		line  string
		words []string // the last one is under the cursor, as bash splits the line
		want  string
	}{
		{"skein queue pu", []string{"skein", "queue", "pu"}, "purge"},
		{"skein  morgue ", []string{"skein", "morgue", ""}, "edit export groups import ls move revive rm"},
		{"skein stats --profile ", []string{"skein", "stats", "--profile", ""}, "blue green"},
		{"skein stats --profile=g", []string{"skein", "stats", "--profile", "=", "g"}, "green"},
		{"skein stats --url memory://x:1 --profile b", []string{"skein", "stats", "--url", "memory", ":", "//x", ":", "1", "--profile", "b"}, "blue"},
		{"skein job ls orders 4", []string{"skein", "job", "ls", "orders", "4"}, ""},
	} {
		c := exec.CommandContext(t.Context(), "bash", append([]string{"--noprofile", "--norc", "-c", `
			skein() { "$PROGRAM" "$@"; }
			eval "$(skein completion bash)"
			COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=$(($# - 2)) COMP_TYPE=63
			COMP_WORDS=("${@:2}")
			__start_skein 2>/dev/null # compopt complains outside of a real completion
			for word in "${COMPREPLY[@]}"; do echo "${word%% *}"; done
		`, "bash", tt.line}, tt.words...)...)
		c.Env = append(os.Environ(),
			mainVariable+"=1", "PROGRAM="+program, "SKEIN_PROFILES="+file, "SKEIN_URL=memory://", "BASH_ENV=")

		out, err := c.CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != tt.want {
			t.Errorf("%s: %v, %q, want %q", tt.line, err, got, tt.want)
		}
	}
}

// Shells offer names of files only where a file belongs.
func TestFilesAreCompletedOnlyWhereTheyBelong(t *testing.T) {
	store := memory.New(memory.Options{})
	declaredIn(t, store, "orders")
	for line, files := range map[string]bool{
		"morgue import orders ":             true,
		"job push orders 1 --payload-file ": true,
		"morgue edit orders 1 --old-file ":  true,
		"stats --url-file ":                 true,
		"morgue import ":                    false,
		"morgue import orders a.jsonl ":     false,
		"job get orders ":                   false,
		"job why orders 4":                  false,
		"morgue revive orders a ":           false,
		"queue merge orders ":               false,
		"doctor ":                           false,
		"job ls orders --limit ":            false,
		"job push orders 1 --payload ":      false,
		"stats --url ":                      false,
		"node drain ":                       false,
	} {
		words := strings.Fields(line)
		if strings.HasSuffix(line, " ") {
			words = append(words, "")
		}
		_, out, _ := callOn(t, store, map[string]string{"SKEIN_URL": "memory://"},
			append([]string{"__complete"}, words...)...)

		directives := strings.Split(strings.TrimSpace(out), ":")
		directive, err := strconv.Atoi(directives[len(directives)-1])
		must(t, err)
		if got := cobra.ShellCompDirective(directive)&cobra.ShellCompDirectiveNoFileComp == 0; got != files {
			t.Errorf("%q offers files: %v, want %v", line, got, files)
		}
	}
}

// A profile names a store of a file; a mistake in the file names its line, and no password.
func TestProfilesNameStores(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profiles")
	must(t, os.WriteFile(file, []byte("# stores\n\nhere  memory://here\nthere memory://elsewhere\n"), 0o600))
	bad := filepath.Join(t.TempDir(), "bad")
	must(t, os.WriteFile(bad, []byte("here redis://me:s3cret@localhost and more\n"), 0o600))
	twice := filepath.Join(t.TempDir(), "twice")
	must(t, os.WriteFile(twice, []byte("a memory://\na memory://\n"), 0o600))

	store := memory.New(memory.Options{})
	declaredIn(t, store, "orders")

	for _, tt := range []struct {
		env        map[string]string
		args, says string
		code       int
	}{
		{map[string]string{"SKEIN_PROFILES": file}, "queue ls --profile here", "orders", 0},
		{map[string]string{"SKEIN_PROFILES": file, "SKEIN_PROFILE": "here"}, "queue ls", "orders", 0},
		{map[string]string{"SKEIN_PROFILES": file, "SKEIN_URL": "memory://elsewhere"}, "queue ls --profile here", "orders", 0},
		{map[string]string{"SKEIN_PROFILES": file, "SKEIN_URL": "memory://here", "SKEIN_PROFILE": "there"}, "queue ls", "orders", 0},
		{map[string]string{"SKEIN_PROFILES": file}, "queue show orders --profile there", "orders", 3},
		{map[string]string{"SKEIN_PROFILES": file}, "queue ls --profile nosuch", "no profile nosuch in " + file + "; use one of here, there", 2},
		{map[string]string{"SKEIN_PROFILES": file}, "queue ls --profile here --url memory://", "give one of --url, --url-file and --profile", 2},
		{map[string]string{"SKEIN_PROFILES": bad}, "queue ls --profile here", "line 1 has 4 words; write a name and a URL", 2},
		{map[string]string{"SKEIN_PROFILES": twice}, "queue ls --profile a", "line 2: the profile a occurs twice", 2},
		{map[string]string{"HOME": "/nosuch"}, "queue ls --profile a", "/nosuch/.config/skein/profiles", 2},
		{map[string]string{}, "queue ls", "SKEIN_PROFILE", 2},
	} {
		code, out, said := callOn(t, store, tt.env, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(out+said, tt.says) || strings.Contains(said, "s3cret") {
			t.Errorf("%v %s: exit code %d, want %d and %q: %s%s", tt.env, tt.args, code, tt.code, tt.says, out, said)
		}
	}
}

// hungStore answers nothing before its caller gives up.
type hungStore struct{ ports.ShardStore }

func (hungStore) Queues(ctx context.Context) ([]ports.Queue, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A command ends with --timeout, and names what it waited for.
func TestTimeoutEndsAnyCommand(t *testing.T) {
	store := hungStore{memory.New(memory.Options{})}
	env := map[string]string{"SKEIN_URL": "memory://"}
	for args, want := range map[string]int{
		"queue ls --timeout 10ms": exitAway,
		"stats --timeout 10ms":    exitAway,
		"stats --timeout -1s":     2,
	} {
		code, _, said := callOn(t, store, env, strings.Fields(args)...)
		if code != want || !strings.Contains(said, "--timeout") {
			t.Errorf("%s: exit code %d, want %d: %s", args, code, want, said)
		}
	}
}
