// Package pages declares the names that the Go of the pages uses and does not declare itself.
// TestGoOfPagesCompiles compiles each page with this file, whose imports the page's code has too,
// and with the file of the page's name if there is one.
package pages

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/otel"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/prometheus"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports/storekit"
	"github.com/skeinq/skein/skeintest"
)

var (
	ctx       context.Context
	pool      *pgxpool.Pool
	store     *postgres.Store
	client    *skein.Client
	handler   skein.Handler
	inspector *inspect.Inspector
	mux       *http.ServeMux
	authorize func(*http.Request, httpapi.Action) error
	actor     func(*http.Request) string
)
