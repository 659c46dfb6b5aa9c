package browser_test

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/dashboard"
)

// axe is axe-core 4.14.1, from npm.
//
//go:embed testdata/axe.min.js
var axe string

const axeSum = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

func TestAxeIsAsPublished(t *testing.T) {
	if sum := sha256.Sum256([]byte(axe)); hex.EncodeToString(sum[:]) != axeSum {
		t.Errorf("testdata/axe.min.js has the sum %x, and had %s when it was taken", sum, axeSum)
	}
}

// isAccessible checks the page by the rules of WCAG 2.2 A and AA that a program can check, and by
// those that are customary.
func (b *tab) isAccessible(what string) {
	b.t.Helper()
	for _, violation := range b.violations() {
		b.t.Errorf("%s: %s", what, violation)
	}
}

func (b *tab) violations() []string {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](axe))
	return eval[[]string](b,
		`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) =>
	  r.violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join("; ")))`)
}

// The checks that the tests of pages rely on can find faults.
func TestABadPageIsFound(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	b := h.tab(desk)
	b.open("")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("dt").style.color = "#eee";
	  const e = document.createElement("button"), f = document.createElement("input"), g = document.createElement("p");
	  e.style.width = "1900px";
	  g.textContent = "down", g.style.height = "300px";
	  document.getElementById("main").prepend(e, f);
	  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => document.getElementById("main").prepend(g), 100)));
	  console.log("said");
	  new Image().src = "https://example.com/x.png"`))
	b.until("window.shifted.length > 0")
	var found []string
	for _, v := range b.violations() {
		found = append(found, strings.SplitN(v, ":", 2)[0])
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"button-name", "color-contrast", "label"}, found); diff != "" {
		t.Errorf("axe finds (-want +got):\n%s", diff)
	}
	if len(b.tooWide()) == 0 {
		t.Error("that it is too wide isn't found")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if all := strings.Join(b.wrong, "\n"); !strings.Contains(all, "the console: log") ||
		!strings.Contains(all, "Content Security Policy") {
		t.Errorf("it was only noticed that: %s", all)
	}
}
