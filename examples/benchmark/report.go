package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// row is the summary of one setting of a work.
type row struct {
	work, system, setting, unit string
	summary
	cpu cpuPerJob // medians
}

// rowsOf summarizes the measurements of a work.
func rowsOf(w work, measured map[*probe]*results) []row {
	var rows []row
	for _, p := range w.probes {
		for _, key := range measured[p].rows {
			all := measured[p].of[key]

			of := func(field func(reading) float64) summary {
				var values []float64
				for _, x := range all {
					values = append(values, field(x))
				}
				return summarize(values)
			}

			rows = append(rows, row{
				w.name, key.system, key.setting, key.unit, of(func(x reading) float64 { return x.value }),
				cpuPerJob{
					client:   of(func(x reading) float64 { return x.cpu.client }).median,
					database: of(func(x reading) float64 { return x.cpu.database }).median,
				},
			})
		}
	}
	return rows
}

// writeJSON writes a row as one object a line.
func writeJSON(out io.Writer, rows []row) error {
	encoder := json.NewEncoder(out)
	for _, r := range rows {
		err := encoder.Encode(struct {
			Work    string  `json:"work"`
			System  string  `json:"system"`
			Setting string  `json:"setting"`
			Median  float64 `json:"median"`
			Min     float64 `json:"min"`
			Max     float64 `json:"max"`
			Unit    string  `json:"unit"`
			// Processor time a job, in µs; absent if it is unknown.
			CPUClient   float64 `json:"cpu_client,omitempty"`
			CPUDatabase float64 `json:"cpu_database,omitempty"`
		}{r.work, r.system, r.setting, r.median, r.min, r.max, r.unit, r.cpu.client, r.cpu.database})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTable writes rows, which may be of several works, as a table in Markdown.
func writeTable(out io.Writer, rows []row) error {
	var b strings.Builder
	b.WriteString("| work | system | setting | median | min … max | unit | CPU µs/job | ratio |\n")
	b.WriteString("| --- | --- | --- | ---: | ---: | --- | ---: | ---: |\n")
	for _, r := range rows {
		ratio := ""
		if other, ok := against(r, rows); ok {
			ratio = fmt.Sprintf("%.2f", advantage(r, other))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s … %s | %s | %s | %s |\n",
			r.work, r.system, r.setting, figure(r.median), figure(r.min), figure(r.max), r.unit, r.cpu, ratio)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// against returns the row that a row of Skein is compared with: among the others' rows of its work
// the one with the same setting, or else the best. If there are no others, it is the work's first
// row.
func against(r row, rows []row) (row, bool) {
	var first, best, same *row

	for i := range rows {
		o := &rows[i]
		switch {
		case o.work != r.work || o.unit != r.unit:
		case o.system == r.system:
			if first == nil {
				first = o
			}
		case o.setting == r.setting && same == nil:
			same = o
		case best == nil || advantage(*o, *best) > 1:
			best = o
		}
	}

	if same == nil {
		same = best
	}
	if same == nil && first != nil && *first != r {
		same = first
	}

	if r.system != skeinName || same == nil {
		return row{}, false
	}
	return *same, true
}

// advantage returns how many times better than another row a row is. A value below 1 means worse.
func advantage(r, other row) float64 {
	if costs(r.unit) {
		return other.median / r.median
	}
	return r.median / other.median
}

// figure formats a number with at least three significant digits.
func figure(v float64) string {
	if v >= 999.5 { // which rounds to four digits
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	}
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// grouped puts commas into a whole number.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
