package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
)

// Sizes of the map of shards. Up to maxBars shards are bars, up to maxSquares squares, and beyond
// that squares are groups of shards. A square is cell pixels and a gap, and a bar is as wide as
// wideBar with its gap.
const (
	maxBars    = 32
	maxSquares = 4096
	cell       = 12
	pitch      = cell + 2
	wideBar    = 18
	barHeight  = 96
	// mapLeft is the room for labels at the left, and mapFoot below bars.
	mapLeft, mapFoot = 36, 16
	// maxOwners is how many owners have a colour of their own.
	maxOwners = 9
)

// shardMap is the map of a queue's shards as drawing instructions: one path for each level.
type shardMap struct {
	By            string
	Shards, Group int
	Paused        bool
	Levels        []level
	NoOwner, Away int
	// Drawings are the map for wide windows and for narrow ones, or one for both.
	Drawings []drawing
}

// level is a set of shards that are drawn alike.
type level struct {
	Class, Label string
	Count        int
}

// drawing is the map of a size.
type drawing struct {
	// Class is wide or narrow, empty for both.
	Class              string
	Bars               bool
	Width, Height      int
	Columns            int
	Pitch              float64
	Paths              []levelPath
	Unowned, Unreached string
	// Rows are the first shards of some rows, and Labels those of bars.
	Rows, Labels []mark
}

// levelPath is a drawing's path for a level: strokes along rows, which the stylesheet dashes into
// squares, or along bars.
type levelPath struct{ Class, Path string }

// layouts are how many columns of squares a drawing has, and up to how many shards it has bars.
var layouts = []struct {
	class         string
	columns, bars int
}{{"wide", 40, maxBars}, {"narrow", 20, 18}}

// cellOf is a shard, or a group of them, in the map.
type cellOf struct {
	level     int
	share     float64
	unowned   bool
	unreached bool
}

// lagLevels and countLevels are the steps of the map. The last one is unbounded.
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
	for at := range cells {
		c := &cells[at]
		if c.unreached {
			m.Away++
			continue
		}
		m.Levels[c.level].Count++
		if c.unowned {
			m.NoOwner++
		}
	}

	for _, l := range layouts {
		m.Drawings = append(m.Drawings, m.draw(cells, l.class, l.columns, len(cells) <= l.bars && m.Group == 1))
		if m.Drawings[0].Bars && len(cells) <= layouts[1].bars {
			m.Drawings[0].Class = "" // it is small enough for all windows
			break
		}
	}
	return m
}

// draw draws cells with the given number of columns, or as bars.
func (m *shardMap) draw(cells []cellOf, class string, columns int, bars bool) drawing {
	d := drawing{Class: class, Bars: bars, Columns: columns, Pitch: pitch}
	if bars {
		d.Columns, d.Pitch = max(1, len(cells)), wideBar
		d.Width, d.Height = len(cells)*wideBar, barHeight+mapFoot+2
	} else {
		rows := (len(cells) + columns - 1) / columns
		d.Width, d.Height = columns*pitch, rows*pitch
		for row := 0; row < rows; row += 10 {
			d.Rows = append(d.Rows, mark{X: float64(row * pitch), Text: fmt.Sprint(row * columns * m.Group)})
		}
	}

	paths := make([]strings.Builder, len(m.Levels))
	var bare, away strings.Builder
	for at := 0; at < len(cells); at++ {
		c := &cells[at]
		x, y, high := d.place(at, c)

		switch {
		case c.unreached:
			fmt.Fprintf(&away, "M%d %dl%d %dm0-%dl-%d %d", x+1, y-high+1, cell-2, high-2, high-2, cell-2, high-2)
		case bars:
			fmt.Fprintf(&paths[c.level], "M%d %dv-%d", x+wideBar/2-1, y, high)
		case at%columns == 0 || cells[at-1].unreached || cells[at-1].level != c.level:
			fmt.Fprintf(&paths[c.level], "M%d %dh%d", x, y-cell/2, alikeFrom(cells, at, columns)*pitch-2)
		}

		if c.unowned && !c.unreached {
			fmt.Fprintf(&bare, "M%d %dh%d", x+3, y-high/2, map[bool]int{true: 10, false: 6}[bars])
		}
		if bars && (at%4 == 0 || len(cells) <= 16) {
			d.Labels = append(d.Labels, mark{X: float64(x + wideBar/2 - 1), Text: fmt.Sprint(at)})
		}
	}

	for at := range paths {
		d.Paths = append(d.Paths, levelPath{m.Levels[at].Class, paths[at].String()})
	}
	d.Unowned, d.Unreached = bare.String(), away.String()
	return d
}

// alikeFrom counts the cells of a row, from one on, that are drawn alike.
func alikeFrom(cells []cellOf, from, columns int) (n int) {
	for at := from; at < len(cells) && (at == from || at%columns != 0) && !cells[at].unreached &&
		cells[at].level == cells[from].level; at++ {
		n++
	}
	return n
}

// place is the position of a cell: its left, its foot, and its height.
func (d *drawing) place(at int, c *cellOf) (x, foot, high int) {
	if d.Bars {
		return at * wideBar, barHeight + 1, max(map[bool]int{true: cell, false: 4}[c.unreached], int(c.share*barHeight))
	}
	return at % d.Columns * pitch, at/d.Columns*pitch + cell, cell
}

// cells returns the drawn values of each shard, and for a group those of its worst shard.
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

// measure returns the map's values for a shard, as a level and a height, and the labels of levels.
func (m *shardMap) measure(
	s *inspect.QueueStats,
	names map[string]string,
) (func(*inspect.ShardStats) (int, float64), []string) {
	switch m.By {
	case "waiting":
		return func(sh *inspect.ShardStats) (int, float64) {
			return stepOf(sh.Waiting(), countLevels), float64(sh.Waiting())
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
	slices.SortFunc(owners, func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), strings.Compare(a, b))
	})
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
