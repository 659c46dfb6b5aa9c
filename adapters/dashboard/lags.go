package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/wrong"
)

// lagBar is a lag on a logarithmic scale from a second to an hour, as a stroke with round ends. The
// path of no lag is empty.
type lagBar struct{ Path, Class string }

// lagWidth and lagHeight are the sizes of the scale of lag bars, in pixels.
const lagWidth, lagHeight = 64, 6

// lagBarOf makes the bar of a lag: blue under a minute, then in the colour of the queue's state.
func lagBarOf(lag time.Duration, level wrong.Level) lagBar {
	if lag <= 0 {
		return lagBar{}
	}

	part := math.Log(max(lag.Seconds(), 1)) / math.Log(time.Hour.Seconds())
	b := lagBar{Path: "M3 3h" + short(max(0.1, min(part, 1)*lagWidth-lagHeight)), Class: "d"}
	switch {
	case level == wrong.Hold:
		b.Class = "kh"
	case lag < time.Minute:
	case level == wrong.Red:
		b.Class = "k4"
	default:
		b.Class = "k3"
	}
	return b
}

// Sizes of the shards of a queue in a row of a table. Up to rowCells shards are one row of cells, and
// up to mostCells two rows of small ones. Beyond that a cell is a group of shards.
const (
	rowCells  = 32
	mostCells = 128
)

// shardCells are the shards of a queue as cells by lag, for a row of a table.
type shardCells struct {
	// Small is true for two rows of small cells.
	Small bool
	Width int
	Paths []levelPath
	Text  string
}

// cellClass returns the class of a cell by its lag: nothing due, up to 10 s, under a minute, under 10
// minutes, more.
func cellClass(lag time.Duration, paused bool) string {
	switch {
	case lag <= 0:
		return "k"
	case paused:
		return "kh"
	case lag <= 10*time.Second:
		return "k1"
	case lag < time.Minute:
		return "k2"
	case lag < 10*time.Minute:
		return "k3"
	}
	return "k4"
}

// cellsOf draws the shards of a queue. only limits them to those of an owner, if it is not empty: the
// others are drawn as if nothing were due.
func cellsOf(stats *inspect.QueueStats, only string) *shardCells {
	group := (max(1, stats.Queue.Shards) + mostCells - 1) / mostCells
	n := (stats.Queue.Shards + group - 1) / group
	c := &shardCells{Small: n > rowCells}

	lags, bare := make([]time.Duration, n), make([]bool, n)
	var worst time.Duration
	unowned := 0
	for at := range stats.Shards {
		sh := &stats.Shards[at]
		cell := sh.Shard.Index / group
		if cell >= n || only != "" && sh.Owner != only {
			continue
		}
		lags[cell], worst = max(lags[cell], sh.Lag), max(worst, sh.Lag)
		if only == "" && (sh.Owner == "" || !sh.ExpiresAt.After(stats.Now)) {
			bare[cell], unowned = true, unowned+1
		}
	}

	columns, pitch := n, 6.0
	if c.Small {
		columns, pitch = (n+1)/2, 3.0
	}
	c.Width = int(math.Ceil(float64(columns) * pitch))

	classes := make([]string, n)
	for at := range classes {
		switch {
		case only != "" && !owns(stats, only, at, group):
			classes[at] = "k"
		case bare[at] && lags[at] > 0:
			classes[at] = "kn"
		case only != "" && lags[at] == 0:
			classes[at] = "k2"
		default:
			classes[at] = cellClass(lags[at], stats.Queue.Paused)
		}
	}
	c.Paths = cellPaths(classes, columns, pitch, c.Small)

	c.Text = figures.Exact(int64(stats.Queue.Shards)) + " shards"
	if stats.Queue.Shards == 1 {
		c.Text = "1 shard"
	}
	if worst > 0 {
		c.Text += ", the worst " + figures.Rough(worst) + " behind"
	}
	if unowned > 0 {
		c.Text += fmt.Sprintf(", %d without an owner", unowned)
	}
	return c
}

// owns reports whether an owner has the lease of one of the shards of a cell.
func owns(stats *inspect.QueueStats, owner string, cell, group int) bool {
	return slices.ContainsFunc(stats.Shards, func(sh inspect.ShardStats) bool {
		return sh.Shard.Index/group == cell && sh.Owner == owner
	})
}

// cellPaths draws cells: for each class strokes along rows, which the stylesheet dashes into cells.
func cellPaths(classes []string, columns int, pitch float64, small bool) (paths []levelPath) {
	for _, class := range []string{"k", "k1", "k2", "k3", "k4", "kh", "kn"} {
		var path strings.Builder
		for at := 0; at < len(classes); {
			end := at + 1
			for end < len(classes) && classes[end] == classes[at] && end%columns != 0 {
				end++
			}
			if classes[at] == class {
				y := 6.0
				if small {
					y = 2.75 + 6.5*float64(at/columns)
				}
				fmt.Fprintf(&path, "M%s %gh%s", short(float64(at%columns)*pitch), y, short(float64(end-at)*pitch-pitch/6))
			}
			at = end
		}
		if path.Len() > 0 {
			paths = append(paths, levelPath{class, path.String()})
		}
	}
	return paths
}
