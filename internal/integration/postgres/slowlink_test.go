package postgres_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

func TestPostgresPayloadsAreHandledThroughASlowLink(t *testing.T) {
	tier.Long(t, "carries 8 MiB at 1 MiB a second")
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	server := pool.Config().ConnConfig
	link := testservers.SlowLink(t, net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port))), kit.SlowRate)
	host, text, err := net.SplitHostPort(link)
	must(t, err)
	port, err := strconv.ParseUint(text, 10, 16)
	must(t, err)
	throughLink := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Host, c.ConnConfig.Port = host, uint16(port) })
	kit.HandleThroughSlowLink(t, postgres.New(pool, postgres.Options{}), postgres.New(throughLink, postgres.Options{}))
}
