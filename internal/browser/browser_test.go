// Package browser tests the dashboard in a real browser: Debian's Chromium, or another that is
// installed.
package browser_test

import (
	"context"
	"log"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browsers are the commands to search for, in this order.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// patience is how long a test waits for an event that must come. It does not measure speed.
const patience = 2 * time.Minute

// shared is the browser of all tests. Each test has a tab that does not share the state of the
// others.
var shared context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path := installed()
	if path == "" {
		if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
			log.Printf("this is CI, where nothing may be missing: none of %q is installed", browsers)
			return 1
		}
		log.Printf("none of %q is installed: the tests in a browser are skipped", browsers)
		return 0
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which root can't have
	}
	processes, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	var stop context.CancelFunc
	shared, stop = chromedp.NewContext(processes)
	defer stop()
	if err := chromedp.Do(shared); err != nil {
		log.Printf("%s doesn't start: %v", path, err)
		return 1
	}
	return m.Run()
}

func installed() string {
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
