package dashboard

import (
	"slices"
	"strings"
)

// scheduleFilter chooses rows of a list of schedules.
type scheduleFilter struct {
	// Name is a part of the name, in any case of letters. State is one of stateNames. Either may be
	// empty.
	Name, State string
}

// filter returns the filter that the page's address has. An unknown state chooses all.
func (c *call) filter() scheduleFilter {
	q := c.r.URL.Query()
	f := scheduleFilter{Name: strings.TrimSpace(q.Get("contains")), State: q.Get("state")}
	if !slices.Contains(stateNames(), f.State) {
		f.State = ""
	}
	return f
}

// rows returns the rows that the filter chooses.
func (f *scheduleFilter) rows(all []scheduleRow) []scheduleRow {
	part := strings.ToLower(f.Name)
	return slices.DeleteFunc(all, func(row scheduleRow) bool {
		return f.State != "" && row.State != f.State || !strings.Contains(strings.ToLower(row.Name), part)
	})
}

// Any reports whether the filter leaves out anything.
func (f scheduleFilter) Any() bool { return f != scheduleFilter{} }

// chip is a choice of a filter.
type chip struct {
	Name    string
	Options []option
}

// option is a value of a choice.
type option struct {
	Value, Text string
	Current     bool
}

// chipOf returns a choice between all and some values.
func chipOf(name, current string, values ...string) chip {
	of := chip{name, []option{{"", "all", current == ""}}}
	for _, value := range values {
		of.Options = append(of.Options, option{value, value, value == current})
	}
	return of
}
