package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// spark is an hour by minutes: done above a line, failed below it, on one scale.
type spark struct {
	Done, Failed string
	Text         string
}

// sparkOf draws the last hour of a queue. nil means unknown.
func sparkOf(minutes []inspect.MinuteStats, now time.Time) *spark {
	const n, up, down = 60, 16, 8
	done, failed := series(minutes, now.Truncate(time.Minute).Add(-(n-1)*time.Minute), time.Minute, n)

	pixels := min(up/max(1, slices.Max(done)), down/max(1, slices.Max(failed)))
	b := barsAt{0, sparkWidth / n, up, pixels}
	s := &spark{Done: b.strokes(done), Failed: b.down().strokes(failed)}
	s.Text = fmt.Sprintf("%s done, %s failed within an hour",
		figures.Count(int64(sum(done))), figures.Count(int64(sum(failed))))
	return s
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// series puts minutes into n steps from a time.
func series(minutes []inspect.MinuteStats, from time.Time, step time.Duration, n int) (done, failed []float64) {
	done, failed = make([]float64, n), make([]float64, n)
	for at := range minutes {
		m := &minutes[at]
		if slot := int(m.At.Sub(from) / step); slot >= 0 && slot < n && !m.At.Before(from) {
			done[slot] += float64(m.Processed)
			failed[slot] += float64(m.Failed)
		}
	}
	return done, failed
}

// barsAt draws values as one path: from x on, each bar of the given width, from a base line up by
// the given number of pixels per unit. A value that is not zero gets at least one pixel.
type barsAt struct{ x, width, base, pixels float64 }

// down draws from the base line down.
func (b barsAt) down() barsAt {
	b.pixels = -b.pixels
	return b
}

// height returns a value's height, upwards if it is negative.
func (b barsAt) height(v float64) float64 {
	return math.Round(2*math.Copysign(max(1, math.Abs(v*b.pixels)), -b.pixels)) / 2
}

// strokes draws the bars as lines, whose width the stylesheet sets. That takes half as many bytes as
// areas.
func (b barsAt) strokes(values []float64) string {
	var path strings.Builder
	for at, v := range values {
		if v > 0 {
			fmt.Fprintf(&path, "M%g %gv%g", b.x+(float64(at)+0.5)*b.width, b.base, b.height(v))
		}
	}
	return path.String()
}
