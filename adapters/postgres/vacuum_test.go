package postgres

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tables that are vacuumed are those that the migrations make, each in one group.
func TestVacuumsTheTablesOfTheMigrations(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*/tables/*.sql")
	if err != nil {
		t.Fatal(err)
	}

	var made []string
	for _, file := range files {
		made = append(made, strings.TrimSuffix(path.Base(file), ".sql"))
	}

	var vacuumed []string
	for g := range tableGroups {
		vacuumed = append(vacuumed, ownTables(g)...)
	}
	slices.Sort(vacuumed)
	if diff := cmp.Diff(made, vacuumed); diff != "" {
		t.Errorf("the tables that are made, and those that are vacuumed (-want +got):\n%s", diff)
	}
}
