// Package vectors has the worked cases of docs/rules.md as data: a file for each rule, with a case
// a line. The tests of package core hold core to them, and the conformance suite every store.
package vectors

import (
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed *.json
var files embed.FS

// Read returns the cases of a file, such as "merge.json".
func Read[T any](name string) ([]T, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var file struct{ Cases []T }
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(file.Cases) == 0 {
		return nil, fmt.Errorf("%s has no cases", name)
	}
	return file.Cases, nil
}
