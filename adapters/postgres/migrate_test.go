package postgres

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

func TestMigrationSQLQuotesTheSchema(t *testing.T) {
	const strange = `a "b" $skein$ $skein_$`
	text := MigrationSQL(strange, 0, NewestVersion()) + MigrationSQL(strange, NewestVersion(), 0)
	if strings.Contains(text, "{") && regexp.MustCompile(`\{(schema|\$)\}`).MatchString(text) {
		t.Error("a placeholder is left")
	}
	if !strings.Contains(text, `"a ""b"" $skein$ $skein_$".jobs`) || !strings.Contains(text, "AS $skein__$") {
		t.Error("the name is not quoted, or ends the dollar quotes")
	}
}

func TestMigrationSQLForNoChange(t *testing.T) {
	for _, v := range [][2]int{{0, 0}, {1, 1}, {-1, 1}, {0, NewestVersion() + 1}} {
		if text := MigrationSQL("", v[0], v[1]); text != "" {
			t.Errorf("from %d to %d: %.40q, want nothing", v[0], v[1], text)
		}
	}
}

// Each version states which programs may use it.
func TestVersionsNameTheOldestProgram(t *testing.T) {
	if len(oldestOf) != len(versions()) {
		t.Fatalf("%d versions say who may use them, of %d", len(oldestOf), len(versions()))
	}
	for n, v := range versions() {
		if v.oldest < 1 || v.oldest > n+1 || n > 0 && v.oldest < oldestOf[n-1] {
			t.Errorf("version %d names %d", n+1, v.oldest)
		}
	}
}

// Every file is part of a version, whatever folder it is in.
func TestMigrationSQLHasEveryFile(t *testing.T) {
	up := MigrationSQL("", 0, NewestVersion())
	err := fs.WalkDir(migrations, "migrations", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "down.sql" {
			return err
		}
		text, err := migrations.ReadFile(file)
		if !strings.Contains(up, expand(string(text), "")) {
			t.Errorf("no version runs %s", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The way down of a version removes what the version creates.
func TestDownMigrationsNameAllThatIsMade(t *testing.T) {
	made := regexp.MustCompile(`CREATE (?:TABLE|VIEW|FUNCTION|TYPE) (\{schema\}\.\w+)`)
	for n, v := range versions() {
		for _, match := range made.FindAllStringSubmatch(v.up, -1) {
			if !regexp.MustCompile(regexp.QuoteMeta(match[1]) + `\b`).MatchString(v.down) {
				t.Errorf("version %d makes %s and does not unmake it", n+1, match[1])
			}
		}
	}
}

// The comment that a file begins with becomes that of its object, whatever its text.
func TestMigrationSQLCommentsOnEachObject(t *testing.T) {
	made := regexp.MustCompile(`CREATE (TABLE|VIEW|FUNCTION|TYPE) (\{schema\}\.\w+)`)
	for n, v := range versions() {
		for _, match := range made.FindAllStringSubmatch(v.up, -1) {
			if !strings.Contains(v.up, "\nCOMMENT ON "+match[1]+" "+match[2]+" IS '") {
				t.Errorf("version %d makes %s without a comment on it", n+1, match[2])
			}
		}
	}

	got := commentOn("-- It's\n-- one.\nCREATE TABLE {schema}.x (n int);\n")
	if want := "COMMENT ON TABLE {schema}.x IS 'It''s\none.';\n"; got != want {
		t.Errorf("the comment is %q, want %q", got, want)
	}
	if got := commentOn("ALTER TABLE {schema}.x ADD m int;\n"); got != "" {
		t.Errorf("a file that makes nothing has the comment %q", got)
	}
}
