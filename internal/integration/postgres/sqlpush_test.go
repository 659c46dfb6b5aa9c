package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/canonical"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/vectors"
	"github.com/skeinq/skein/ports"
)

// Codes of errors.
const (
	invalidParameter = "22023"
	undefinedObject  = "42704"
	notAllowed       = "42501"
)

// sql runs a statement that names the schema by %s.
func (v *viewed) sql(statement string, args ...any) error {
	_, err := v.pool.Exec(v.t.Context(), v.in(statement), args...)
	return err
}

// in puts the schema into a statement.
func (v *viewed) in(statement string) string {
	return strings.ReplaceAll(statement, "%s", pgx.Identifier{v.schema}.Sanitize())
}

// queued returns the queued job of an id, or nil.
func (v *viewed) queued(id string) *ports.JobView {
	v.t.Helper()
	found, err := v.open(postgres.Options{NoWakeups: true}).Find(v.t.Context(),
		ports.FindRequest{Queue: "orders", ID: id, Payloads: 1000})
	v.must(err)
	return found.Queued
}

// refusedWith reports whether Postgres refused a statement with a code, and with a hint.
func refusedWith(err error, code string) bool {
	refused := new(pgconn.PgError)
	return errors.As(err, &refused) && refused.Code == code && (refused.Hint != "" || code == notAllowed)
}

func TestPostgresSQLFindsTheShardsThatGoFinds(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	cases, err := vectors.Read[struct {
		ID            string
		Shards, Shard int
	}]("shards.json")
	v.must(err)

	for _, c := range cases {
		var got int
		v.must(v.pool.QueryRow(t.Context(), v.in(`SELECT %s.shard_of($1, $2)`), c.ID, c.Shards).Scan(&got))
		if got != c.Shard {
			t.Errorf("%q of %d shards: %d, want %d", c.ID, c.Shards, got, c.Shard)
		}
	}
}

func TestPostgresSQLWritesTheCanonicalForm(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	cases, err := vectors.Read[vectors.Canonical]("canonical.json")
	v.must(err)

	for _, c := range cases {
		// A jsonb has no NUL and no exponent of 20 digits, and of equal members it has the last.
		if c.Refused == "member" || strings.Contains(c.JSON, `\u0000`) ||
			strings.Contains(c.JSON, "e99999999999999999999") {
			continue
		}

		var got string
		err := v.pool.QueryRow(t.Context(), v.in(`SELECT %s.canonical_json($1::text::jsonb)`), string(c.Given())).
			Scan(&got)
		if got != c.Want || (err != nil) != (c.Refused != "") {
			t.Errorf("%s: %s: %s, %v; want %s, %q", c.About, c.Given(), got, err, c.Want, c.Refused)
		}
		if c.Refused == "number" && !refusedWith(err, invalidParameter) && !strings.Contains(c.JSON, "e9") {
			t.Errorf("%s: %v", c.About, err)
		}
	}
}

// Numbers with as many digits as a double needs, and with one more or less, and those halfway between
// two doubles.
func TestPostgresSQLWritesNumbersAsGoDoes(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	random := rand.New(rand.NewPCG(1, 2))
	var numbers []string
	for range 4000 {
		double := math.Float64frombits(random.Uint64())
		if random.IntN(2) == 0 {
			double = float64(random.Uint64()>>random.IntN(64)) * math.Pow(10, float64(random.IntN(40)-30))
		}
		if math.IsNaN(double) || math.IsInf(double, 0) {
			continue
		}
		for _, digits := range []int{-1, 14, 15, 16} {
			numbers = append(numbers, strconv.FormatFloat(double, 'e', digits, 64))
		}
	}
	numbers = append(numbers,
		"1e23", "9.5e-324", "5e-324", "4e-324", "1.7976931348623157e308", "1.7976931348623158e308", "1e309", "1e-400",
		"18014398509481990", "18014398509481992", "18014398509481988", "9007199254740993", "2.2250738585072014e-308",
		"0.1", "100", "1e21", "1e-6", "1e-7", "123456789012345680000", "-0", "-1.5",
	)

	// One statement for all: an error would end it, so a block catches each.
	tx, err := v.pool.Begin(t.Context())
	v.must(err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), v.in(`CREATE FUNCTION pg_temp.written(p numeric) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN %s.canonical_number(p);
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN 'refused';
END $$`))
	v.must(err)
	rows, err := tx.Query(t.Context(), `
SELECT pg_temp.written(n.number::numeric)
FROM unnest($1::text[]) WITH ORDINALITY n (number, place)
ORDER BY n.place`, numbers)
	v.must(err)
	written, err := pgx.CollectRows(rows, pgx.RowTo[string])
	v.must(err)

	for i, number := range numbers {
		want := "refused"
		if text, err := canonical.JSON([]byte(number)); err == nil {
			want = string(text)
		}
		if written[i] != want {
			t.Errorf("%s: %s, want %s", number, written[i], want)
		}
	}
}

// Values of JSON that Go pushes in its canonical form merge with those that SQL pushes.
func TestPostgresSQLPushesMergeWithThoseOfGo(t *testing.T) {
	t.Parallel()
	for _, merge := range []skein.MergeRule{skein.Union(), skein.Every()} {
		t.Run(merge.String(), func(t *testing.T) {
			v := newViewed(t, 7)
			orders := skein.NewQueue("merged", skein.QueueOptions[map[string]any]{
				Shards: 7, IndexIDs: true, Merge: merge, Codec: skein.JSONCodec[map[string]any]{Canonical: true},
				Score: func(m map[string]any) float64 { return m["n"].(float64) },
			})
			store := v.open(postgres.Options{NoWakeups: true})
			client := skein.NewClient(store, skein.ClientOptions{})

			for i := range 40 {
				id := fmt.Sprint("order ", i)
				score := float64(i) + 0.25
				value := map[string]any{
					"n": score,
					"é": "<&>\u2028",
					"b": []any{nil, true, 1e21},
					"a": map[string]any{"ﬀ": 1.0, "😀": 2.0},
				}
				text, err := json.Marshal(value)
				v.must(err)
				v.must(orders.Push(t.Context(), client, id, value))
				v.must(v.sql(`SELECT %s.push_json('merged', $1, $2::text::jsonb, score => $3)`,
					id, string(text), score))

				found, err := store.Find(t.Context(), ports.FindRequest{Queue: "merged", ID: id, Payloads: 1000})
				v.must(err)
				if found.Queued == nil || found.Queued.Count != 1 {
					t.Errorf("%s: %+v, want one payload", id, found.Queued)
				}
			}
		})
	}
}

func TestPostgresSQLPushesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 5)
	due := time.UnixMicro(4_000_000_000_123_456).UTC()
	before := time.Now()
	v.must(v.sql(`SELECT %s.push_bytes('orders', 'a', '\x00ff', 3.5, $1, ARRAY['vip','eu','vip'])`, due))
	v.must(v.sql(`SELECT %s.push_bytes(queue => 'orders', id => 'b', data => '')`))
	v.must(v.sql(`SELECT %s.push_json('orders', 'c', 'null')`))

	got := v.queued("a")
	tags, err := core.NewTags("vip", "eu")
	v.must(err)
	want := []core.Payload{{Data: []byte("\x00\xff"), Score: 3.5}}
	if got == nil || !cmp.Equal(got.Payloads, want) || got.PerformAt != core.InstantOf(due) ||
		got.Tags != tags || !got.Fresh() {
		t.Errorf("%+v, want %v at %v with the tags %q", got, want, due, tags)
	}

	for id, data := range map[string]string{"b": "", "c": "null"} {
		got := v.queued(id)
		if got == nil || len(got.Payloads) != 1 || string(got.Payloads[0].Data) != data {
			t.Fatalf("%s: %+v", id, got)
		}
		// The clocks of the test and of the server are of one machine.
		seconds := got.Payloads[0].Score
		if seconds < float64(before.Unix()) || core.Instant(math.Round(seconds*1e6)) != got.PerformAt ||
			got.FirstPush != got.PerformAt {
			t.Errorf("%s: score %v, first pushed at %v, due at %v", id, seconds, got.FirstPush, got.PerformAt)
		}
	}
}

// A push belongs to its transaction.
func TestPostgresSQLPushesInATransaction(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	for _, commits := range []bool{true, false} {
		tx, err := v.pool.Begin(t.Context())
		v.must(err)
		for i := range 3 {
			_, err := tx.Exec(t.Context(), v.in(`SELECT %s.push_bytes('orders', 'x', $1)`), []byte{byte(i)})
			v.must(err)
		}
		if v.queued("x") != nil {
			t.Fatal("it is there before its commit")
		}
		if !commits {
			v.must(tx.Rollback(t.Context()))
			continue
		}
		v.must(tx.Commit(t.Context()))
		if got := v.queued("x"); got == nil || got.Count != 3 {
			t.Errorf("%+v, want three payloads", got)
		}
		v.must(v.sql(`DELETE FROM %s.jobs; DELETE FROM %s.payloads; DELETE FROM %s.inbox`))
	}
	if v.queued("x") != nil {
		t.Error("it is there after the rollback")
	}
}

// What SQL refuses is what Go refuses.
func TestPostgresSQLRefusesWhatGoRefuses(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 5)
	long := strings.Repeat("é", core.MaxIDBytes/2)
	ids := []string{
		"", " ", "a", long, long + "a", "a\x01", "a\tb", "\u007f", "\u0080", "\u009f", "\u00a0", "\u2028", "\ufeff",
		"日本", "😀", `'"\`, "%s", "$1", "..", "a/b", "\ufffe", "\U0010ffff",
	}
	tags := [][]string{
		nil, {}, {"a"}, {""}, {"a", "a"}, {strings.Repeat("x", 64)}, {strings.Repeat("x", 65)}, {"a\x1fb"},
		{"1", "2", "3", "4", "5", "6", "7", "8"}, {"1", "2", "3", "4", "5", "6", "7", "8", "9"},
		{"1", "2", "3", "4", "5", "6", "7", "8", "8"}, {strings.Repeat("é", 33)},
	}
	scores := []float64{0, math.Copysign(0, -1), -1e308, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324}
	last := int64(core.MaxInstant)
	times := []time.Time{time.UnixMicro(0), time.UnixMicro(-1), time.UnixMicro(last), time.UnixMicro(last + 1)}

	type entry struct {
		id    string
		tags  []string
		score float64
		due   time.Time
	}
	usual := entry{"id", nil, 1, time.UnixMicro(7)}
	var all []entry
	for _, id := range ids {
		all = append(all, entry{id, usual.tags, usual.score, usual.due})
	}
	for _, list := range tags {
		all = append(all, entry{usual.id, list, usual.score, usual.due})
	}
	for _, score := range scores {
		all = append(all, entry{usual.id, usual.tags, score, usual.due})
	}
	for _, due := range times {
		all = append(all, entry{usual.id, usual.tags, usual.score, due})
	}

	for _, e := range all {
		set, err := core.NewTags(e.tags...)
		if err == nil {
			in := core.Entry{ID: e.id, Tags: set, When: core.At(core.Instant(e.due.UnixMicro()))}
			in.Score = e.score
			err = in.Validate()
		}
		got := v.sql(`SELECT %s.push_bytes('orders', $1, '', $2, $3, $4)`, e.id, e.score, e.due, e.tags)
		if (err != nil) != (got != nil) || got != nil && !refusedWith(got, invalidParameter) {
			t.Errorf("%q, tags %q, score %v, due %v: %v, want as in Go %v", e.id, e.tags, e.score, e.due, got, err)
		}
	}

	for statement, code := range map[string]string{
		`SELECT %s.push_bytes('nowhere', 'a', '')`:                                     undefinedObject,
		`SELECT %s.push_bytes(NULL, 'a', '')`:                                          undefinedObject,
		`SELECT %s.push_bytes('orders', NULL, '')`:                                     invalidParameter,
		`SELECT %s.push_bytes('orders', 'a', NULL)`:                                    invalidParameter,
		`SELECT %s.push_json('orders', 'a', NULL)`:                                     invalidParameter,
		`SELECT %s.push_json('orders', 'a', '12345678901234567890')`:                   invalidParameter,
		`SELECT %s.push_bytes('orders', 'a', '', due => 'infinity')`:                   invalidParameter,
		`SELECT %s.push_bytes('orders', 'a', '', tags => ARRAY['a', NULL])`:            invalidParameter,
		`SELECT %s.push_bytes('orders', 'a', convert_to(repeat('x', 524289), 'UTF8'))`: invalidParameter,
	} {
		if err := v.sql(statement); !refusedWith(err, code) {
			t.Errorf("%s: %v, want %s with a hint", statement, err, code)
		}
	}
	v.must(v.sql(`SELECT %s.push_bytes('orders', 'large', convert_to(repeat('x', 524288), 'UTF8'))`))
}

// A role that may only push can do nothing else with the schema.
func TestPostgresSQLPushesNeedOnlyTheirRight(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 2)
	role := "pusher_" + strings.ReplaceAll(v.schema, "-", "_")
	quoted := pgx.Identifier{role}.Sanitize()
	kit.Exec(t, v.pool, `CREATE ROLE `+quoted+` LOGIN`)
	t.Cleanup(func() {
		_, _ = v.pool.Exec(context.Background(), `DROP OWNED BY `+quoted)
		_, err := v.pool.Exec(context.Background(), `DROP ROLE `+quoted)
		v.must(err)
	})

	conn, err := pgx.ConnectConfig(t.Context(), v.pool.Config().ConnConfig.Copy())
	v.must(err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	try := func(statement string) error {
		_, err := conn.Exec(t.Context(), v.in(statement))
		return err
	}
	v.must(try(`SET SESSION AUTHORIZATION ` + quoted))

	push := `SELECT %s.push_json('orders', 'a', '{}')`
	if err := try(push); !refusedWith(err, notAllowed) {
		t.Errorf("without a right: %v", err)
	}
	kit.Exec(t, v.pool, v.in(`GRANT USAGE ON SCHEMA %s TO `+quoted))
	if err := try(push); !refusedWith(err, notAllowed) {
		t.Errorf("with the right to use the schema: %v", err)
	}
	kit.Exec(t, v.pool, v.in(`GRANT EXECUTE ON FUNCTION %s.push_json, %s.push_bytes TO `+quoted))
	v.must(try(push))
	v.must(try(`SELECT %s.push_bytes('orders', 'b', 'x')`))

	// Functions and operators of the role's own replace none of the server's.
	v.must(try(`SET search_path = pg_temp, pg_catalog`))
	const raises = ` LANGUAGE plpgsql AS $$ BEGIN RAISE 'called as %', current_user; END $$`
	v.must(try(`CREATE TABLE pg_temp.queues AS
SELECT 'orders'::text AS name, 0 AS id, 1 AS shards, false AS same_push`))
	v.must(try(`CREATE FUNCTION pg_temp.pg_notify(text, text) RETURNS void` + raises))
	v.must(try(`CREATE FUNCTION pg_temp.octet_length(bytea) RETURNS int` + raises))
	v.must(try(`SELECT %s.push_bytes('orders', 'c', 'x')`))
	v.must(try(`RESET search_path`))

	for _, statement := range []string{
		`SELECT FROM %s.jobs`,
		`SELECT FROM %s.inbox`,
		`SELECT FROM %s.queues`,
		`SELECT FROM %s.turn_log`,
		`INSERT INTO %s.inbox (shard, kind) VALUES (0, 'push')`,
		`DELETE FROM %s.inbox`,
		`TRUNCATE %s.jobs`,
		`COPY %s.jobs TO STDOUT`,
		`GRANT ALL ON %s.jobs TO PUBLIC`,

		`SELECT %s.fold(0, 0, 0, 0, 0, 0, 0)`,
		`SELECT %s.drop_entries(0, 0, '{a}', '{1}', NULL, NULL)`,
		`SELECT %s.known_records('x', NULL, '{orders}', '{0}', '{1}')`,
		`SELECT %s.forget('orders', 0)`,
		`SELECT %s.set_paused('orders', true)`,
		`SELECT %s.merge_inboxes('orders', NULL, NULL)`,
		`SELECT %s.push_in_tx('orders', 2, 1, NULL, 0::smallint, 0, '[]', 'x', '{}')`,
		`SELECT %s.push('orders', 2, 1, NULL, 0::smallint, 0, '{0}', '{a}', NULL, NULL, '{1}', '{""}', '{NULL}',
  NULL, NULL, NULL, NULL, NULL)`,

		`CREATE TABLE %s.mine ()`,
		`CREATE FUNCTION %s.push_bytes() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		`ALTER FUNCTION %s.push_bytes RESET ALL`,
		`DROP FUNCTION %s.push_bytes`,
		`DROP SCHEMA %s CASCADE`,
		`CREATE TRIGGER mine BEFORE INSERT ON %s.inbox
FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
	} {
		if err := try(statement); !refusedWith(err, notAllowed) {
			t.Errorf("%s: %v, want %s", statement, err, notAllowed)
		}
	}

	v.must(try(`RESET SESSION AUTHORIZATION`))
	for _, id := range []string{"a", "b", "c"} {
		if v.queued(id) == nil {
			t.Errorf("%s was not pushed", id)
		}
	}
}

// Of the open transactions that push to a shard one notifies.
func TestPostgresSQLPushesWakeServers(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	store := v.open(postgres.Options{})
	woken, err := store.Wakeups(t.Context(), []core.Shard{{Queue: "orders"}})
	v.must(err)

	for i := range 3 {
		v.must(v.sql(`SELECT %s.push_bytes('orders', $1, '')`, fmt.Sprint(i)))
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatal("no wake-up")
		}
	}

	var txs []pgx.Tx
	for i := range 2 {
		tx, err := v.pool.Begin(t.Context())
		v.must(err)
		_, err = tx.Exec(t.Context(), v.in(`SELECT %s.push_bytes('orders', $1, '')`), fmt.Sprint("tx ", i))
		v.must(err)
		txs = append(txs, tx)
	}
	var locks int
	v.must(v.pool.QueryRow(t.Context(),
		`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ANY ($1)`, pids(txs)).Scan(&locks))
	if locks != 1 {
		t.Errorf("%d of 2 transactions notify, want 1", locks)
	}
	for _, tx := range slices.Backward(txs) {
		v.must(tx.Commit(t.Context()))
	}
	<-woken
}

func pids(txs []pgx.Tx) (list []uint32) {
	for _, tx := range txs {
		list = append(list, tx.Conn().PgConn().PID())
	}
	return list
}
