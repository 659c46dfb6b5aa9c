package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/ports"
)

// An operator gets the error of a read-only server once a new connection has met it too; servers
// and producers wait for a failover.
func TestAnOperatorDoesNotWaitForAFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/shop?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()

		for _, mode := range []retry{ifRolledBack, idempotent, ifRolledBack | operated, idempotent | operated} {
			calls := 0
			err := attempt(t.Context(), &pooled{pool: pool}, mode, func(context.Context) error {
				calls++
				return pgError(readOnlyServer, "ERROR")
			})
			asks := mode&operated != 0
			if (calls == 2) != asks || errors.Is(err, ports.ErrUnusable) != asks {
				t.Errorf("mode %d: %d calls, then %v", mode, calls, err)
			}
		}
	})
}

// Connections that are made anew a second apart at most are not new to each call: an operator's is
// refused only by one that was made since it began.
func TestAnOperatorMeetsANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/shop?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()

		p := &pooled{pool: pool}
		p.reset()
		time.Sleep(resetEvery / 2)
		began := p.last.Load()

		err = attempt(t.Context(), p, idempotent|operated, func(context.Context) error {
			if p.last.Load() == began {
				return pgError(readOnlyServer, "ERROR")
			}
			return nil // a new connection is to the primary
		})
		if err != nil {
			t.Errorf("beside a primary: %v", err)
		}
	})
}

// The error of a call that is cancelled in a caller's transaction names the setting, as it does
// elsewhere, and a check names the missing part.
func TestWhatIsCancelledNamesItsSetting(t *testing.T) {
	cancelled := pgError(queryCanceled, "ERROR")
	for name, text := range map[string]string{
		"alone": translate(t.Context(), cancelled).Error(), "in a transaction": translateTx(cancelled).Error(),
		"a check": unknownAdvice(cancelled), "a check without time": unknownAdvice(context.DeadlineExceeded),
	} {
		if !strings.Contains(text, "statement_timeout") || strings.Contains(text, "grant") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if advice := unknownAdvice(pgError(noRight, "ERROR")); !strings.Contains(advice, "grant") {
		t.Errorf("a check without a right: %s", advice)
	}
}
