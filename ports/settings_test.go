package ports_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestSettingsConflictNamesWhoChangedWhat(t *testing.T) {
	setting := func(name, value, by string, at core.Instant) core.Setting {
		return core.Setting{Name: name, Value: value, By: by, At: at}
	}
	const noon = 1_764_500_400_000_000
	for _, tt := range []struct {
		settings core.Settings
		want     string
	}{
		{core.Settings{}, "have version 0, and none was ever set; look at the queue again, then repeat the change"},
		{core.Settings{Version: 4, Broken: true}, "have version 4, and can't be read; look"},
		{
			core.Settings{Version: 2, By: "bob", At: noon, Set: []core.Setting{
				setting("max-lanes", "1", "ann", noon-1),
				setting("max-running", "20", "bob", noon),
				setting("morgue-age", "0s", "bob", noon),
			}},
			`have version 2, and bob changed them at 2025-11-30 11:00:00 UTC: ` +
				`max-running to "20", morgue-age to "0s"; look`,
		},
		{
			core.Settings{Version: 3, At: noon, Set: []core.Setting{setting("max-lanes", "1", "ann", noon-1)}},
			`have version 3, and somebody without a name changed them at 2025-11-30 11:00:00 UTC; look`,
		},
	} {
		var err error = fmt.Errorf("a store: %w", &ports.SettingsConflictError{Queue: "orders", Settings: tt.settings})
		if !errors.Is(err, ports.ErrSettingsConflict) || !strings.Contains(err.Error(), `queue "orders" `+tt.want) {
			t.Errorf("the error is %v, want %q", err, tt.want)
		}
	}
}

// The setting of permits accepts what a request for permits does.
func TestMaxRunningIsWithinPermits(t *testing.T) {
	if _, err := core.ParseSetting(core.SettingMaxRunning, strconv.Itoa(ports.MaxPermits)); err != nil {
		t.Error(err)
	}
	if _, err := core.ParseSetting(core.SettingMaxRunning, strconv.Itoa(ports.MaxPermits+1)); err == nil {
		t.Error("a limit above ports.MaxPermits is accepted")
	}
}
