package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
)

// Settlements of a claim by its outcome, as core makes them.

func done(c core.Claim) core.Settlement { return outcome(c, core.Outcome{Kind: core.Done}) }

func dropped(c core.Claim) core.Settlement { return outcome(c, core.Outcome{Kind: core.Dropped}) }

func untouched(c core.Claim) core.Settlement { return outcome(c, core.Outcome{Kind: core.Untouched}) }

func snoozed(c core.Claim, d time.Duration) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Snoozed, Delay: d})
}

func buried(c core.Claim, reason string) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Buried, Error: reason})
}

func failed(c core.Claim, reason string, d time.Duration) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Failed, Error: reason, Delay: d, OwnDelay: true})
}

func recovered(c core.Claim) core.Settlement { return policy().Recover(&c) }

func outcome(c core.Claim, o core.Outcome) core.Settlement { return policy().Settlement(&c, &o, 0) }

// policy has more retries than any case uses.
func policy() core.RetryPolicy { return core.RetryPolicy{MaxRetries: 1000, MaxRecoveries: 1000} }

func settleAll(claims []core.Claim, how func(core.Claim) core.Settlement) []core.Settlement {
	out := make([]core.Settlement, len(claims))
	for i, c := range claims {
		out[i] = how(c)
	}
	return out
}
