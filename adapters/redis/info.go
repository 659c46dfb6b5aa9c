package redis

import (
	"fmt"
	"strconv"
	"strings"
)

// info is a server's reply to INFO: values by name.
type info map[string]string

func parseInfo(text string) info {
	fields := make(info)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// int returns a number, or 0 if the server does not report it.
func (f info) int(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}

// replicas returns the address of each replica and its lag in seconds.
func (f info) replicas() map[string]int64 {
	lags := make(map[string]int64)
	for n := range f.int("connected_slaves") {
		about := make(info)
		for pair := range strings.SplitSeq(f[fmt.Sprintf("slave%d", n)], ",") {
			if name, value, ok := strings.Cut(pair, "="); ok {
				about[name] = value
			}
		}
		lags[about["ip"]+":"+about["port"]] = about.int("lag")
	}
	return lags
}

// size formats a number of bytes for people.
func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units := float64(bytes)/unit, "KMGTPE"
	for value >= unit {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}
