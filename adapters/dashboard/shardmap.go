package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
)

// Sizes of the map of shards: up to maxBars shards are bars, up to maxSquares squares, and beyond that groups of shards. A square is
// cell pixels and a gap.
const (
	maxBars    = 32
	maxSquares = 4096
	mapColumns = 40
	cell       = 12
	pitch      = cell + 2
	barHeight  = 96
	// maxOwners is how many owners have a colour of their own.
	maxOwners = 9
)

// shardMap is the map of a queue's shards as drawing instructions: one path for each level, so that a thousand shards are some kilobytes.
type shardMap struct {
	By                 string
	Bars               bool
	Width, Height      int
	Columns            int
	Pitch              float64
	Shards, Group      int
	Paused             bool
	Levels             []level
	Unowned, Unreached string
	NoOwner, Away      int
	Rows               []mark
}

// level is what is drawn alike.
type level struct {
	Class, Label, Path string
	Count              int
}

// cellOf is a shard, or a group of them, in the map.
type cellOf struct {
	level     int
	share     float64
	unowned   bool
	unreached bool
}

// lagLevels and countLevels are the steps of the map; the last has no end.
var (
	lagLevels   = []time.Duration{0, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}
	lagLabels   = []string{"nothing due", "under 1 s", "under 10 s", "under 1 min", "under 10 min", "more"}
	countLevels = []int64{0, 9, 99, 999, 9_999}
	countLabels = []string{"none", "1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999", "more"}
)

// stepOf returns the first level that a value does not exceed.
func stepOf[T cmp.Ordered](v T, levels []T) int {
	for at, most := range levels {
		if v <= most {
			return at
		}
	}
	return len(levels)
}

// shardMapOf draws the map of a queue by lag, waiting, running or owner.
func shardMapOf(s *inspect.QueueStats, by string, names map[string]string) *shardMap {
	m := &shardMap{By: by, Shards: s.Queue.Shards, Group: 1, Paused: s.Queue.Paused}
	for m.Shards > maxSquares*m.Group {
		m.Group *= 8
	}
	cells := m.cells(s, names)
	paths := make([]strings.Builder, len(m.Levels))
	var bare, away strings.Builder
	m.layout(len(cells))
	for at := range cells {
		x, y, w, h := m.place(at, &cells[at])
		c := &cells[at]
		switch {
		case c.unreached:
			m.Away++
			fmt.Fprintf(&away, "M%d %dl%d %dm0-%dl-%d %d", x+1, y+1, w-2, h-2, h-2, w-2, h-2)
			continue
		case c.unowned:
			m.NoOwner++
			fmt.Fprintf(&bare, "M%d %dh%d", x+3, y+h/2, w-6)
		}
		m.Levels[c.level].Count++
		fmt.Fprintf(&paths[c.level], "M%d %dh%dv%dh-%dz", x, y, w, h, w)
	}
	for at := range paths {
		m.Levels[at].Path = paths[at].String()
	}
	m.Unowned, m.Unreached = bare.String(), away.String()
	return m
}

// layout decides how large the map of n cells is.
func (m *shardMap) layout(n int) {
	if m.Bars = n <= maxBars && m.Group == 1; m.Bars {
		m.Columns, m.Pitch = max(1, n), 18
		m.Width, m.Height = n*18, barHeight+2
		return
	}
	m.Columns, m.Pitch = mapColumns, pitch
	rows := (n + mapColumns - 1) / mapColumns
	m.Width, m.Height = mapColumns*pitch, rows*pitch
	for row := 0; row < rows; row += 10 {
		m.Rows = append(m.Rows, mark{float64(row * pitch), fmt.Sprint(row * mapColumns * m.Group)})
	}
}

// place is where a cell stands.
func (m *shardMap) place(at int, c *cellOf) (x, y, w, h int) {
	if m.Bars {
		high := max(4, int(c.share*barHeight))
		return at * 18, barHeight + 1 - high, 16, high
	}
	return at % mapColumns * pitch, at / mapColumns * pitch, cell, cell
}

// cells returns what is drawn of each shard, of a group the worst of its shards.
func (m *shardMap) cells(s *inspect.QueueStats, names map[string]string) []cellOf {
	value, labels := m.measure(s, names)
	for at, label := range labels {
		m.Levels = append(m.Levels, level{Class: fmt.Sprintf("v%d", at), Label: label})
	}
	cells := make([]cellOf, (s.Queue.Shards+m.Group-1)/m.Group)
	reached := make([]int, len(cells))
	var most float64
	for at := range s.Shards {
		sh := &s.Shards[at]
		c := &cells[sh.Shard.Index/m.Group]
		reached[sh.Shard.Index/m.Group]++
		level, share := value(sh)
		c.level, c.share = max(c.level, level), max(c.share, share)
		c.unowned = c.unowned || sh.Owner == "" || !sh.ExpiresAt.After(s.Now)
		most = max(most, c.share)
	}
	for at := range cells {
		want := min(m.Group, s.Queue.Shards-at*m.Group)
		cells[at].unreached = reached[at] < want
		cells[at].share /= max(most, 1)
	}
	return cells
}

// measure returns what the map shows of a shard, as a level and a height, and the labels of levels.
func (m *shardMap) measure(s *inspect.QueueStats, names map[string]string) (func(*inspect.ShardStats) (int, float64), []string) {
	switch m.By {
	case "waiting":
		return func(sh *inspect.ShardStats) (int, float64) {
			return stepOf(sh.Length(), countLevels), float64(sh.Length())
		}, countLabels
	case "running":
		return func(sh *inspect.ShardStats) (int, float64) {
			return stepOf(sh.Claimed, countLevels), float64(sh.Claimed)
		}, countLabels
	case "owner":
		return byOwner(s, names)
	}
	m.By = "lag"
	return func(sh *inspect.ShardStats) (int, float64) {
		return stepOf(sh.Lag, lagLevels), sh.Lag.Seconds()
	}, lagLabels
}

// byOwner gives each owner a level: those with most shards one of their own, the rest the last.
func byOwner(s *inspect.QueueStats, names map[string]string) (func(*inspect.ShardStats) (int, float64), []string) {
	held := map[string]int{}
	for at := range s.Shards {
		if sh := &s.Shards[at]; sh.Owner != "" && sh.ExpiresAt.After(s.Now) {
			held[sh.Owner]++
		}
	}
	var owners []string
	for owner := range held {
		owners = append(owners, owner)
	}
	slices.SortFunc(owners, func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), strings.Compare(a, b)) })
	if len(owners) > maxOwners {
		owners = owners[:maxOwners]
	}
	labels := []string{"nobody"}
	for _, owner := range owners {
		labels = append(labels, cmp.Or(names[owner], owner))
	}
	if len(held) > len(owners) {
		labels = append(labels, "others")
	}
	return func(sh *inspect.ShardStats) (int, float64) {
		if held[sh.Owner] == 0 || !sh.ExpiresAt.After(s.Now) {
			return 0, 0
		}
		if at := slices.Index(owners, sh.Owner); at >= 0 {
			return at + 1, 1
		}
		return len(labels) - 1, 1
	}, labels
}
