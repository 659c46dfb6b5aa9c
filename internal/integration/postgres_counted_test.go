package integration_test

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// counted tells of each statement that holds a text when it is sent.
type counted struct {
	of   string
	seen chan struct{}
}

func (c *counted) trace(config *pgxpool.Config) { config.ConnConfig.Tracer = c }

func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, c.of) {
		c.seen <- struct{}{}
	}
	return ctx
}

func (*counted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
