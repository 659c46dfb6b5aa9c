package storekit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

func settings() core.Settings {
	return core.Settings{Version: 3, By: "bob", At: 7, Set: []core.Setting{
		{Name: "max-lanes", Value: "0", By: "ann", At: 5},
		{Name: "zones", Value: "<a> \"b\"\n"},
	}}
}

func encoded(t testing.TB, s core.Settings) string {
	t.Helper()
	text, err := storekit.EncodeSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSettingsAreDecodedAsEncoded(t *testing.T) {
	for _, s := range []core.Settings{settings(), {Version: 1}, {Version: core.MaxSettingsVersion}} {
		got, err := storekit.DecodeSettings(s.Version, encoded(t, s))
		if err != nil || !got.Equal(s) {
			t.Errorf("%+v, not %+v: %v", got, s, err)
		}
	}
	if got, err := storekit.DecodeSettings(0, ""); err != nil || !got.Equal(core.Settings{}) {
		t.Errorf("version 0: %+v, %v", got, err)
	}
}

// Unknown members may come from another version of the package.
func TestSettingsWithUnknownMembersAreDecoded(t *testing.T) {
	s := settings()
	text := strings.Replace(encoded(t, s), "{", `{"moon":"full",`, 2)
	if got, err := storekit.DecodeSettings(s.Version, text); err != nil || !got.Equal(s) {
		t.Errorf("%s: %+v, %v", text, got, err)
	}
}

func TestSettingsThatCannotBeReadAreBroken(t *testing.T) {
	for _, tt := range []struct {
		version    int64
		text, want string
		known      int64
	}{
		{3, "", "it is no JSON object", 3},
		{3, "?", "it is no JSON object", 3},
		{3, "[]", "it is no JSON object", 3},
		{3, "{}", "it has no list of settings", 3},
		{3, `{"settings":null}`, "it has no list of settings", 3},
		{3, `{"settings":[{"name":1}]}`, "its member name is a number, which is the wrong type", 3},
		{3, `{"settings":[{"name":""}]}`, "it breaks a rule of this version", 3},
		{3, `{"settings":[{"name":"b"},{"name":"a"}]}`, "names must be in order", 3},
		{-1, `{"settings":[]}`, "the first one is 1", 0},
		{core.MaxSettingsVersion + 1, `{"settings":[]}`, "the first one is 1", 0},
	} {
		got, err := storekit.DecodeSettings(tt.version, tt.text)
		if !got.Equal(core.Settings{Version: tt.known, Broken: true}) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("version %d, %s: %+v, %v; want the reason %q", tt.version, tt.text, got, err, tt.want)
		}
	}
}

// FuzzDecodeSettings has any texts: what can be read is valid, and is read again from its own text.
func FuzzDecodeSettings(f *testing.F) {
	f.Add(int64(3), encoded(f, settings()))
	f.Add(int64(1), `{"settings":[]}`)
	f.Add(int64(-1), `{"settings":[{"name":"a","value":"\u0000"}]}`)
	f.Fuzz(func(t *testing.T, version int64, text string) {
		s, err := storekit.DecodeSettings(version, text)
		switch {
		case err != nil:
			if !s.Broken || len(s.Set) > 0 || s.Version < 0 || s.Version > core.MaxSettingsVersion {
				t.Errorf("unread settings are %+v", s)
			}
		case version == 0:
		default:
			again, err := storekit.DecodeSettings(version, encoded(t, s))
			if s.Validate() != nil || err != nil || !again.Equal(s) {
				t.Errorf("%+v is read again as %+v, %v", s, again, err)
			}
		}
	})
}
