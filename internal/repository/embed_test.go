package repository

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEmbeddingCompilesNoOtherModule builds the program of testdata/embed in a module of its own.
// A program that embeds Skein with the memory store gets no other dependency.
func TestEmbeddingCompilesNoOtherModule(t *testing.T) {
	dir := strangersModule(t)

	modules := strings.Fields(goIn(t, dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	slices.Sort(modules)
	if diff := cmp.Diff([]string{"example.com/stranger", module}, slices.Compact(modules)); diff != "" {
		t.Errorf("modules compiled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("order-42 [{placed} {paid}]\n", goIn(t, dir, "run", ".")); diff != "" {
		t.Errorf("the program printed (-want +got):\n%s", diff)
	}
}

// required are the modules that the root's go.mod requires for itself, and so all that
// a program that imports Skein can inherit. Each is in docs/decisions.
var required = []string{
	"github.com/google/go-cmp", "github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9", "pgregory.net/rapid",
}

// A module that requires Skein inherits the requirements of its go.mod. Modules that only tests on
// real servers need, Docker above all, are required by the tests' own module.
func TestModuleRequiresOnlyWhatIsDecided(t *testing.T) {
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(goOutput(t, exec.Command("go", "mod", "edit", "-json"))), &file); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, require := range file.Require {
		if !require.Indirect {
			direct = append(direct, require.Path)
		}
	}
	if diff := cmp.Diff(required, direct); diff != "" {
		t.Errorf("modules that go.mod requires (-want +got):\n%s", diff)
	}
}

// strangersModule returns a directory with a module that requires this checkout. The
// go command may ask for the go.mod files of what Skein's tests import: they are
// in the module cache, since these tests are built from them, and are verified
// by Skein's own go.sum.
func strangersModule(t *testing.T) (dir string) {
	t.Helper()
	checkout, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), fmt.Sprintf(
		"module example.com/stranger\n\ngo 1.26\n\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]q\n", module, checkout))
	for from, to := range map[string]string{"go.sum": "go.sum", "internal/repository/testdata/embed/main.go": "main.go"} {
		text, err := os.ReadFile(filepath.FromSlash(from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, to), string(text))
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goIn runs the go command in a directory, without network, and returns its output.
func goIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	return goOutput(t, cmd)
}

// goOutput runs a go command and returns its output.
func goOutput(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, problems.String())
	}
	return string(out)
}
