package main

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// goWord matches names of a Go program's parts: an exported name of a package, a name of several
// words, or a field of options that is not a flag.
var goWord = regexp.MustCompile(`\b[a-z]+\.[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b(Limit|Payloads|Fresh|Group|Prefix|Continue|Find|Password|Username) `)

// speaksOfFlags fails if an error does not name the flag or command, or names a part of a Go
// program, except in addition to the command that does the same.
func speaksOfFlags(t *testing.T, said, want string) {
	t.Helper()
	if !strings.Contains(said, want) {
		t.Errorf("want %q in: %s", want, said)
	}
	own := regexp.MustCompile(`("skein [a-z ]+"|by a URL \S+,) or (in a program by )?\w+\.\w+|NaN`).ReplaceAllString(said, "")
	if word := goWord.FindString(own); word != "" {
		t.Errorf("it speaks of %q, which is no flag and no command: %s", word, said)
	}
}

// A user of the command knows its flags, and not the names of a Go program.
func TestErrorsNameFlagsAndCommands(t *testing.T) {
	kept := &memories{stores: map[string]*memory.Store{}}
	for _, tt := range []struct{ line, want string }{
		{"job push orders a --payload x --shards 1", ""},
		{"job ls orders --sort id", "without an index of ids"},
		{"job ls orders --prefix a", "without an index of ids"},
		{"job ls orders --fresh --sort retries", "by time or by id"},
		{"job ls orders --fresh --claimed", "by time or by id"},
		{"job ls orders --sort retries --from -3", "-3 retries"},
		{"job ls orders --limit -1", "-1 rows"},
		{"job ls orders --payloads -1", "-1 payloads"},
		{"job ls orders --shard 9", "no shard 9"},
		{"morgue ls orders --group nope --sort id", "dead letters by time"},
		{"morgue groups orders --limit -1", "-1 groups"},
		{"job push orders a --payload x --score NaN", "finite number"},
		{"job push orders a --payload x --shards 1 --index-ids", "--index-ids"},
		{"queue forget orders", "not empty"},
		{"queue pause nowhere", "unknown queue"},
		{"node drain nowhere", "unknown server"},
		{"morgue edit orders a --payload y", "no dead letter"},
	} {
		var out, said bytes.Buffer
		p := process{
			stdin:   strings.NewReader(""),
			stdout:  &out,
			stderr:  &said,
			env:     env("memory://words"),
			connect: kept.connect,
		}

		if code := p.run(t.Context(), strings.Fields(tt.line)); code == 0 && tt.want != "" {
			t.Errorf("%s: it ends with 0", tt.line)
		}
		speaksOfFlags(t, said.String(), tt.want)
	}
}

// Refusals of stores can be cured by the URL and by commands.
func TestErrorsOfStoresNameFlagsAndCommands(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	older := testservers.Schema(t, pool)
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: older}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM `+older+`.migrations`); err != nil {
		t.Fatal(err)
	}

	locked := testservers.OwnRedis(t).(*goredis.Client)
	if err := locked.ConfigSet(t.Context(), "requirepass", "sesame").Err(); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct{ what, url, want string }{
		{"a schema that is not there", with(testservers.PostgresURL(t), "schema", "nowhere"), `skein migrate up`},
		{"an older schema", with(testservers.PostgresURL(t), "schema", older), `run "skein migrate up"`},
		{"a database that Redis has not", at(t, testservers.RedisURL(t), "/9999"), "redis://HOST:PORT/0"},
		{"a password that is missing", "redis://" + locked.Options().Addr, "redis://USER:PASSWORD@HOST:PORT"},
		{"a password that is wrong", "redis://:no@" + locked.Options().Addr, "correct the user and the password"},
		{"a Redis that is no Cluster", strings.Replace(at(t, testservers.RedisURL(t), ""), "redis://", "redis-cluster://", 1), "redis://HOST:PORT"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var out, said bytes.Buffer
			p := process{
				stdin:         strings.NewReader(""),
				stdout:        &out,
				stderr:        &said,
				env:           env(tt.url),
				connect:       backends.Connect,
				answersWithin: testservers.Patience,
			}

			if code := p.run(t.Context(), []string{"stats"}); code == 0 {
				t.Errorf("it ends with 0: %s", out.String())
			}
			speaksOfFlags(t, said.String(), tt.want)
		})
	}
}

// at returns a URL of another database.
func at(t *testing.T, rawURL, path string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path, u.RawQuery = path, ""
	return u.String()
}
