package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// profilesDefault is the path of the file of profiles unless SKEIN_PROFILES names another file, or
// XDG_CONFIG_HOME another directory than ~/.config.
const profilesDefault = "~/.config/skein/profiles"

// profile is a store with a name.
type profile struct{ name, url string }

// profilesPath returns the path of the file of profiles.
func (a *app) profilesPath() string {
	if path := a.env("SKEIN_PROFILES"); path != "" {
		return path
	}
	if dir := a.env("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "skein", "profiles")
	}
	return filepath.Join(a.env("HOME"), ".config", "skein", "profiles")
}

// profiles reads the file of profiles: each line has a name and a URL. Empty lines and those that
// begin with # are skipped. Errors contain no URL, because it may contain a password.
func (a *app) profiles() (list []profile, err error) {
	path := a.profilesPath()
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: the file of profiles: %w; each of its lines is a name and a URL", errUsage, err)
	}

	known := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}

		fields := strings.Fields(line)
		switch {
		case len(fields) != 2:
			return nil, fmt.Errorf("%w: %s, line %d has %d words; write a name and a URL",
				errUsage, path, number, len(fields))
		case known[fields[0]]:
			return nil, fmt.Errorf("%w: %s, line %d: the profile %s occurs twice; remove one",
				errUsage, path, number, quoted(fields[0]))
		}

		known[fields[0]] = true
		list = append(list, profile{fields[0], fields[1]})
	}

	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUsage, path, err)
	}
	return list, nil
}

// profileURL returns the URL of the named profile.
func (a *app) profileURL(name string) (string, error) {
	list, err := a.profiles()
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range list {
		if p.name == name {
			return p.url, nil
		}
		names = append(names, quoted(p.name))
	}
	return "", fmt.Errorf("%w: no profile %s in %s; use one of %s",
		errUsage, quoted(name), a.profilesPath(), strings.Join(names, ", "))
}
