package storekit

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/skeinq/skein/core"
)

// storedSettings are the settings of a queue as stores keep them beside their version: JSON, which
// people can read.
type storedSettings struct {
	Set []storedSetting `json:"settings"`
	By  string          `json:"by,omitempty"`
	At  core.Instant    `json:"at"`
}

type storedSetting struct {
	Name  string       `json:"name"`
	Value string       `json:"value"`
	By    string       `json:"by,omitempty"`
	At    core.Instant `json:"at"`
}

// errNoSettings is the reason for a text without the member "settings".
var errNoSettings = errors.New("it has no list of settings")

// EncodeSettings returns settings without their version as a text for [DecodeSettings]. Equal
// settings have equal texts.
func EncodeSettings(s core.Settings) (string, error) {
	stored := storedSettings{Set: make([]storedSetting, len(s.Set)), By: s.By, At: s.At}
	for i, e := range s.Set {
		stored.Set[i] = storedSetting(e)
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

// DecodeSettings returns the settings of a version that [EncodeSettings] has encoded, in this version
// of the package or another. Unknown members are ignored. Version 0 has no settings, whatever the
// text is.
//
// If the text can't be read, or has settings that no store would take, DecodeSettings returns Broken
// settings of that version, and the reason. A version that no settings have counts as unknown.
func DecodeSettings(version int64, text string) (core.Settings, error) {
	if version == 0 {
		return core.Settings{}, nil
	}

	var stored storedSettings
	err := json.Unmarshal([]byte(text), &stored)
	s := core.Settings{Version: version, By: stored.By, At: stored.At}
	for _, e := range stored.Set {
		s.Set = append(s.Set, core.Setting(e))
	}

	switch {
	case err != nil:
		err = reasonOf(err)
	case stored.Set == nil:
		err = errNoSettings
	default:
		if err = s.Validate(); err == nil {
			return s, nil
		}
		err = fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	if version < 0 || version > core.MaxSettingsVersion {
		version = 0
	}
	return core.Settings{Version: version, Broken: true}, err
}

// SettingsShown is the number of bytes that logs and checks show of settings that can't be read.
const SettingsShown = 200

// LogUnread logs that a queue has settings that can't be read. text is what is stored, and err is the
// reason.
func LogUnread(logger *slog.Logger, queue, text string, err error) {
	logger.Error("the settings of a queue can't be read: servers keep those that they have read, "+
		"and start with the options of their code; "+
		"set one of them again, which replaces them",
		"queue", queue, "settings", core.CutText(text, SettingsShown), "error", err)
}
