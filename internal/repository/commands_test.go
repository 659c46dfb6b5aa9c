package repository

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goCommand is a call of the go command in a page or a comment, from a directory of its own or
// from the checkout's.
var goCommand = regexp.MustCompile(`\bgo (?:-C ([\w/.-]+) )?(?:run|install|build|test|vet|doc) ([^` + "`" + `\n]*)`)

// Each package that a page gives to the go command belongs to the module in which the page calls
// it.
func TestGoCommandsOfPagesNamePackages(t *testing.T) {
	wanted := map[string][]string{} // the packages by directory
	shownBy := map[string]string{}
	eachText(t, func(name, text string) {
		if filepath.Ext(name) != ".md" {
			return
		}
		for _, call := range goCommand.FindAllStringSubmatch(text, -1) {
			dir := "./" + call[1]
			for _, arg := range strings.Fields(call[2]) {
				arg = strings.TrimRight(arg, ".,:;)")
				if strings.HasPrefix(arg, "./") && shownBy[dir+" "+arg] == "" {
					wanted[dir] = append(wanted[dir], arg)
					shownBy[dir+" "+arg] = name
				}
			}
		}
	})
	if len(shownBy) < 5 {
		t.Errorf("%d packages were found, fewer than there were", len(shownBy))
	}
	for dir, packages := range wanted {
		for _, p := range packages {
			if out, err := exec.Command("go", "-C", dir, "list", p).CombinedOutput(); err != nil {
				t.Errorf("%s: the go command in %s does not know %s: %s", shownBy[dir+" "+p], dir, p, out)
			}
		}
	}
}
