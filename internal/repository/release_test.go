package repository

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/internal/tier"
)

// published are the directories of the modules that scripts/release tags, in its order.
var published = []string{".", "adapters/otel", "adapters/prometheus", "cmd/skein"}

func TestReleaseTagsThePublishedModules(t *testing.T) {
	tree := checkout(t)
	release := func(version string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "scripts/release", version)
		cmd.Dir = tree
		cmd.Env = gitEnv(tree)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}

	for _, version := range []string{"v0.1.0", "v0.1.1"} {
		out, err := release(version)
		if err != nil {
			t.Fatalf("scripts/release %s: %v\n%s", version, err, out)
		}
		var tags []string
		for _, dir := range published {
			tags = append(tags, path.Join(dir, version))
		}
		want := "tagged " + strings.Join(tags, "\ntagged ") + "\nnow push: git push --atomic origin HEAD " + strings.Join(tags, " ") + "\n"
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("scripts/release %s printed (-want +got):\n%s", version, diff)
		}
		slices.Sort(tags)
		if diff := cmp.Diff(tags, strings.Fields(git(t, tree, "tag", "--points-at", "HEAD"))); diff != "" {
			t.Errorf("tags of the commit (-want +got):\n%s", diff)
		}
		if changes := git(t, tree, "status", "--porcelain"); changes != "" {
			t.Errorf("scripts/release %s left changes:\n%s", version, changes)
		}
		requireOnlyEarlier(t, tree, version)
	}

	for _, test := range []struct{ version, change, want string }{
		{"v0.1.0", "", "the tag v0.1.0 exists"},
		{"0.2.0", "", "usage"},
		{"v2.0.0", "", "usage"},
		{"v0.2.0", "notes.txt", "the working tree has changes"},
	} {
		if test.change != "" {
			write(t, filepath.Join(tree, test.change), "")
		}
		head := git(t, tree, "rev-parse", "HEAD")
		if out, err := release(test.version); err == nil || !strings.Contains(out, test.want) {
			t.Errorf("scripts/release %s: %v, %q; want an error with %q", test.version, err, out, test.want)
		}
		if git(t, tree, "rev-parse", "HEAD") != head || len(strings.Fields(git(t, tree, "tag"))) != 2*len(published) {
			t.Errorf("scripts/release %s failed and left a commit or a tag", test.version)
		}
	}
}

// requireOnlyEarlier checks that each published module requires only published modules before it,
// at the version, and replaces none.
func requireOnlyEarlier(t *testing.T, tree, version string) {
	t.Helper()
	for i, dir := range published {
		text, err := os.ReadFile(filepath.Join(tree, dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "replace ") {
			t.Errorf("%s/go.mod has a replace; go install refuses it", dir)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
			if len(fields) < 2 || fields[0] == "module" || !strings.HasPrefix(fields[0], module) {
				continue
			}
			if !slices.Contains(published[:i], within(fields[0])) || fields[1] != version {
				t.Errorf("%s/go.mod requires %s %s; it may require %v at %s", dir, fields[0], fields[1], published[:i], version)
			}
		}
	}
}

// TestUsersInstallAReleasedVersion releases a version of the working tree to a module proxy of
// files. Users install the command and build programs from it, as they do from a public proxy.
func TestUsersInstallAReleasedVersion(t *testing.T) {
	tier.Long(t, "compiles the command and four programs with an empty module cache")
	const version = "v0.1.0"
	tree := checkout(t)
	tidy := exec.CommandContext(t.Context(), "scripts/tidy")
	tidy.Dir, tidy.Env = tree, gitEnv(tree)
	goOutput(t, tidy)
	if changes := git(t, tree, "diff"); changes != "" {
		t.Errorf("run scripts/tidy; it changes\n%s", changes)
	}
	release := exec.CommandContext(t.Context(), "scripts/release", version)
	release.Dir, release.Env = tree, gitEnv(tree)
	goOutput(t, release)
	env := proxyEnv(t, tree, version)

	install := exec.CommandContext(t.Context(), "go", "install", module+"/cmd/skein@"+version)
	bin := t.TempDir()
	install.Dir, install.Env = bin, append(slices.Clone(env), "GOBIN="+bin)
	goOutput(t, install)
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "skein"), "--version").CombinedOutput()
	if diff := cmp.Diff("skein "+version+"\n", string(out)); err != nil || diff != "" {
		t.Errorf("skein --version: %v (-want +got):\n%s", err, diff)
	}

	testOnly := []string{"github.com/ory/dockertest", "github.com/docker/", "github.com/moby/", "go.opentelemetry.io/otel/sdk", "github.com/chromedp/"}
	telemetry := append(slices.Clone(testOnly), "go.opentelemetry.io/")
	for _, user := range []struct {
		name      string
		module    string // below the root's
		program   string
		forbidden []string
	}{
		{"redis", "", `import (
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
)
var _ = redis.New
func main() { _ = goredis.NewClient }`, telemetry},
		{"postgres", "", `import "github.com/skeinq/skein/adapters/postgres"
var _ = postgres.New
func main() {}`, telemetry},
		{"prometheus", "/adapters/prometheus", `import "github.com/skeinq/skein/adapters/prometheus"
var _ = prometheus.New
func main() {}`, telemetry},
		{"otel", "/adapters/otel", `import "github.com/skeinq/skein/adapters/otel"
var _ = otel.NewMetrics
func main() {}`, testOnly},
		{"tool", "/cmd/skein", "", telemetry},
	} {
		t.Run(user.name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir, cmd.Env = dir, env
				return goOutput(t, cmd)
			}
			write(t, filepath.Join(dir, "go.mod"), "module example.com/user\n\ngo 1.26\n\nrequire "+module+user.module+" "+version+"\n")
			if user.program != "" {
				write(t, filepath.Join(dir, "main.go"), "package main\n\n"+user.program+"\n")
				run("build", "-o", filepath.Join(dir, "program"), ".")
			}
			for m := range strings.Lines(run("list", "-m", "all")) {
				for _, prefix := range user.forbidden {
					if strings.HasPrefix(m, prefix) {
						t.Errorf("a user of %s inherits %s", module+user.module, m)
					}
				}
			}
		})
	}
}

// checkout returns a repository of its own with one commit: the files of the working tree that git
// does not ignore.
func checkout(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	for name := range strings.SplitSeq(goOutput(t, exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")), "\x00") {
		info, err := os.Lstat(name)
		if name == "" || err != nil || !info.Mode().IsRegular() {
			continue // of a file that was removed and not committed nothing is left
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	git(t, tree, "init", "--quiet")
	git(t, tree, "add", "--all", "--force")
	git(t, tree, "commit", "--quiet", "--message", "all")
	return tree
}

func git(t *testing.T, tree string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = tree, gitEnv(tree)
	return goOutput(t, cmd)
}

// gitEnv is the environment of commands in a tree of a test: no settings of this machine's user,
// and no variables of a hook that runs the tests.
func gitEnv(tree string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "GOWORK=") })
	return append(env, "PWD="+tree, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
}

// proxyEnv makes a module proxy of files that has the published modules of a tree, and returns the
// environment of a user who uses it. Other modules come from this machine's module cache, or else
// from its proxy. The user's own module cache is empty.
func proxyEnv(t *testing.T, tree, version string) []string {
	t.Helper()
	proxy := t.TempDir()
	for _, dir := range published {
		to := filepath.Join(proxy, module, dir, "@v")
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		mod, err := os.ReadFile(filepath.Join(tree, dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, "list"), version+"\n")
		write(t, filepath.Join(to, version+".info"), `{"Version":"`+version+`"}`)
		write(t, filepath.Join(to, version+".mod"), string(mod))
		write(t, filepath.Join(to, version+".zip"), string(moduleZip(t, filepath.Join(tree, dir), path.Join(module, dir)+"@"+version)))
	}
	known := strings.Fields(goOutput(t, exec.Command("go", "env", "GOMODCACHE", "GOPROXY")))
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOMODCACHE="+t.TempDir(),
		"GOPROXY=file://"+proxy+",file://"+known[0]+"/cache/download,"+known[1])
}

// moduleZip packs the files of the module in dir, without modules below it.
func moduleZip(t *testing.T, dir, prefix string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, missing := os.Stat(filepath.Join(name, "go.mod"))
			if name != dir && missing == nil || entry.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		file, err := w.Create(prefix + "/" + filepath.ToSlash(below))
		if err != nil {
			return err
		}
		_, err = file.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
