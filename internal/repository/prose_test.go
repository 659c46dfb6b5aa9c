package repository

import (
	"fmt"
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseRule forbids a pattern in comments and pages.
type proseRule struct {
	forbidden *regexp.Regexp
	instead   string
	// except, if not nil, matches the pattern with the words beside it where it is allowed.
	except *regexp.Regexp
	// statement is whether questions, headings and texts before a colon may have the pattern.
	statement bool
	// present is whether records of the past may have the pattern: decisions and the changelog.
	present bool
}

// proseRules are the rules 1 to 4 and 6 of plain English that a pattern can check without false
// alarms. A sentence begins a passage or follows a full stop, a colon, a semicolon or a dash.
var proseRules = []proseRule{
	{
		forbidden: regexp.MustCompile(sentence + `Who (?:can|can't|does|has|is|[a-z]+s)\b[^.?:!]*`),
		instead:   `rule 1: the subject is a noun: "readers", "the caller", "an operator"`,
		statement: true,
	},
	{
		forbidden: regexp.MustCompile(`\b(?:than|for|to|by|from|with|if|when|while|that|but) who [a-z]+s\b`),
		instead:   `rule 1: name the person: "a caller who asks"`,
	},
	{
		forbidden: regexp.MustCompile(`\b[Ww]hoever\b`),
		instead:   `rule 1: name the person or the program`,
	},
	{
		forbidden: regexp.MustCompile(sentence + `What (?:is|was|has been) (?:not )?(?:[a-z]+(?:ed|wn)|found|given|held|kept|left|lost|made|put|read|sent|taken|written)\b[^.?:!]*`),
		instead:   `rule 1: the subject is a noun: "queued jobs", not "what is queued"`,
		statement: true,
	},
	{
		forbidden: regexp.MustCompile(`\b(?:how|if|when|while|whether|because|than|until) what (?:is|was)\b`),
		instead:   `rule 1: the subject is a noun: "how the lease is held", not "how what is held"`,
	},
	{
		forbidden: regexp.MustCompile(`\b[Oo]f (?:which|whose|whom)\b`),
		except: regexp.MustCompile(`\b(?:one|two|three|each|all|none|some|most|half|many|any|both|either|neither|several|part|` +
			`hundreds|thousands|first|last|[a-z]+est) of (?:which|whose|whom)\b`),
		instead: `rule 2: begin a second sentence`,
	},
	{
		forbidden: regexp.MustCompile(`\bso (?:many|much)\b`),
		instead:   `rule 3: "n jobs", "the given number", "at most limit"; or "too many to"`,
	},
	{
		forbidden: regexp.MustCompile(`\b(?:is|are|was|were) none\b`),
		except:    regexp.MustCompile(`\bthere (?:is|are|was|were) none\b|\bnone of\b`),
		instead:   `rule 3: "none" only with its noun: "there is no error"`,
	},
	{
		forbidden: regexp.MustCompile(`\b(?:says?|said) (?:that|whether)\b`),
		instead:   `rule 4: functions return, report and log; an error or a field states or means`,
	},
	{
		forbidden: regexp.MustCompile("[\\w)\\]'`] (?:says|said|tells)\\b"),
		instead:   `rule 4: a function returns, reports or prints, a field or a page has, an error states`,
		present:   true,
	},
	{
		forbidden: regexp.MustCompile(`\b(?:goes|go|going|went|gone) on\b`),
		except:    regexp.MustCompile(`\bon (?:the|an?|each|its|that|this|top)\b`),
		instead:   `rule 6: continue, run, or last`,
		present:   true,
	},
	{
		forbidden: regexp.MustCompile(`\b(?:[Hh]eed(?:s|ed|ing)?|[Mm]end(?:s|ing)|to mend|put off|pass(?:es|ed)? over|in vain)\b`),
		instead:   `rule 6: respect, repair, delay, skip, without result`,
		present:   true,
	},
	{
		forbidden: regexp.MustCompile(`\b(?:am|are|be|been|is|was|were) away\b`),
		except:    regexp.MustCompile(`\baway from\b`),
		instead:   `rule 6: can't be reached, or does not answer`,
		present:   true,
	},
}

// sentence matches where a sentence begins.
const sentence = `(?:^|[.:;] +|^[-*] )`

// proseWidth is the widest line of a comment or a page, and cellWidth the longest cell of a table,
// in characters. Links, images and code may be longer: they can't be wrapped.
const (
	proseWidth = 100
	cellWidth  = 200
)

// Comments and pages follow the rules of plain English that can be checked.
func TestProseIsPlain(t *testing.T) {
	files := 0
	eachFileOf(t, hasProse, func(name, text string) {
		files++
		if faults := proseFaults(name, text); len(faults) > 0 {
			t.Errorf("%s breaks the rules of prose at %d places:\n%s", name, len(faults), strings.Join(faults, "\n"))
		}
	})
	if files < 1000 {
		t.Errorf("%d files were found, fewer than there were: is one not looked at?", files)
	}
}

// Each rule finds its faults, and only those.
func TestProseRulesFindTheirFaults(t *testing.T) {
	long := strings.Repeat("long ", 20)
	for _, c := range []struct{ name, text, want string }{
		{"a.go", "// Who looks waits less.\n", "a.go:1: rule 1"},
		{"a.go", "// Looks end.\n// Whoever\n// asks waits.\n", "a.go:2: rule 1"},
		{"a.go", "// It is for who works.\n", "a.go:1: rule 1"},
		{"a.go", "// It ends. What is queued stays.\n", "a.go:1: rule 1"},
		{"a.go", "// How what is read ends: how what\n// is read.\n", "a.go:1: rule 1"},
		{"a.go", "x := 1 // jobs, of which one runs\n", "a.go:1: rule 2"},
		{"a.go", "// jobs, of\n// which one runs\n", "a.go:1: rule 2"},
		{"a.go", "// jobs, each of which runs, or nil if there is none\n", ""},
		{"a.lua", "x = 1 -- at most so many\n", "a.lua:1: rule 3"},
		{"a.sql", "SELECT 1;\n-- the error is none\n", "a.sql:2: rule 3"},
		{"Makefile", "# They say that it ran.\nrun: # and of which\n", "Makefile:1: rule 4"},
		{"a.go", "/* jobs\nof which */", "a.go:2: rule 2"},
		{"a.go", "// says is a field. The error says\n// why.\n", "a.go:1: rule 4"},
		{"a.go", "// tells none apart; `put` tells all.\n", "a.go:1: rule 4"},
		{"a.go", "// It goes on until then, and goes on the list.\n", "a.go:1: rule 6"},
		{"a.go", "// The call heeds ctx.\n", "a.go:1: rule 6"},
		{"a.go", "// The server is\n// away.\n", "a.go:1: rule 6"},
		{"docs/decisions/README.md", "The call heeds what it says.\n", ""},
		{"a.go", "// " + long + long + "\n", "a.go:1: 203 columns"},
		{"a.md", long + "\n" + long + long + "\n", "a.md:2: 200 columns"},
		{"a.md", "| " + long + long + long + " | of which |\n", "a.md:1: rule 2\na.md:1: a cell of 299 characters"},
		{"docs/decisions/README.md", "| " + long + long + long + " |\n", ""},
		{"a.md", "```\nof which " + long + long + "\n```\n    of which\n\n`of which`\n", ""},
		{"a.md", "[text](https://example.com/" + strings.ReplaceAll(long, " ", "-") + ")\n", ""},
		{"a.md", "![" + long + long + "](a.png)\n", ""},
		{"a.md", "# What is measured\n\nWho reads it?\n\nWhat is logged:\n", ""},
		{"a.go", "var x = \"// of which\" // caller who asks\n//go:generate of which\n", ""},
		{"a.go", "func Example() {\n\tf()\n\t// Output:\n\t// " + long + long + "\n}\n", ""},
		{"a.go", "// https://example.com/" + strings.ReplaceAll(long, " ", "-") + "\n", ""},
		{"a.go", "//\tcode " + long + "\n", ""},
	} {
		var got []string
		for _, fault := range proseFaults(c.name, c.text) {
			where, what, _ := strings.Cut(fault, ": ")
			short, _, _ := strings.Cut(what, ":")
			short, _, _ = strings.Cut(short, ",")
			got = append(got, where+": "+short)
		}
		if got := strings.Join(got, "\n"); got != c.want {
			t.Errorf("%s %q:\ngot  %s\nwant %s", c.name, c.text, got, c.want)
		}
	}
}

// hasProse reports whether a file's comments or text are checked.
func hasProse(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".lua", ".sql", ".md":
		return true
	}
	return isScript(name)
}

func isScript(name string) bool {
	return filepath.Base(name) == "Makefile" || filepath.Dir(name) == "scripts"
}

// proseFaults lists the places of a file that break a rule, each as "file:line: rule".
func proseFaults(name, text string) (faults []string) {
	for _, p := range passages(name, text) {
		joined := p.joined()
		for _, rule := range proseRules {
			if rule.present && ofThePast(name) {
				continue
			}
			for _, at := range rule.forbidden.FindAllStringIndex(joined, -1) {
				if !rule.allows(p, joined, at[0], at[1]) {
					faults = append(faults, fmt.Sprintf("%s:%d: %s, in %q", name, p.lineAt(at[0]), rule.instead, joined[at[0]:at[1]]))
				}
			}
		}
		faults = append(faults, p.tooWide(name)...)
	}
	return faults
}

// allows reports whether a passage may have the pattern at a place of its joined text.
func (r *proseRule) allows(p *passage, joined string, from, to int) bool {
	const beside = 20
	if r.except != nil && r.except.MatchString(joined[max(0, from-beside):min(len(joined), to+beside)]) {
		return true
	}
	return r.statement && (p.heading || strings.ContainsRune("?:", after(joined, to)))
}

// after returns the character of a text at a place, 0 at its end.
func after(text string, at int) rune {
	if at == len(text) {
		return 0
	}
	return rune(text[at])
}

// passage is text that reads on from line to line.
type passage struct {
	lines          []proseLine
	heading, table bool
	users          bool // Whether the text is a page for users.
}

type proseLine struct {
	number int
	text   string // Without the marks of a comment, code and targets of links.
	width  int    // In columns; 0 if it may be as wide as it is.
}

func (p *passage) joined() string {
	texts := make([]string, len(p.lines))
	for i, line := range p.lines {
		texts[i] = line.text
	}
	return strings.Join(texts, " ")
}

// lineAt returns the number of the line that has a place of the joined text.
func (p *passage) lineAt(place int) int {
	for _, line := range p.lines {
		if place -= len(line.text) + 1; place < 0 {
			return line.number
		}
	}
	return p.lines[len(p.lines)-1].number
}

// tooWide lists the lines that are too wide, and the cells that are too long.
func (p *passage) tooWide(name string) (faults []string) {
	for _, line := range p.lines {
		if !p.table && !p.heading && line.width > proseWidth {
			faults = append(faults, fmt.Sprintf("%s:%d: %d columns, the limit is %d", name, line.number, line.width, proseWidth))
		}
		if !p.table || !p.users {
			continue
		}
		for cell := range strings.SplitSeq(line.text, "|") {
			if n := utf8.RuneCountInString(strings.TrimSpace(cell)); n > cellWidth {
				faults = append(faults, fmt.Sprintf("%s:%d: a cell of %d characters, the limit is %d", name, line.number, n, cellWidth))
			}
		}
	}
	return faults
}

func passages(name, text string) []*passage {
	switch {
	case filepath.Ext(name) == ".go":
		return passagesOfGo(text)
	case filepath.Ext(name) == ".md":
		return passagesOfPage(text, forUsers(name))
	case isScript(name):
		return passagesOfScript(text, scriptComment)
	}
	return passagesOfScript(text, dashComment)
}

// ofThePast reports whether a page records what was true at its date.
func ofThePast(name string) bool {
	return name == "CHANGELOG.md" || strings.HasPrefix(name, "docs/decisions/") || strings.HasPrefix(name, "docs/evidence/")
}

// forUsers reports whether a page is for users, and not for contributors.
func forUsers(name string) bool {
	for _, other := range []string{"docs/architecture", "docs/contributing/", "docs/decisions", "docs/evidence/"} {
		if strings.HasPrefix(name, other) {
			return false
		}
	}
	return name != "CONTRIBUTING.md"
}

// reader gathers lines into passages.
type reader struct {
	list []*passage
	next int // The line that continues the last passage.
}

// add adds a line. A blank one ends the passage before it.
func (r *reader) add(line proseLine, continues bool) {
	switch {
	case strings.TrimSpace(line.text) == "" && line.width <= proseWidth:
		r.next = 0
	case continues && line.number == r.next:
		last := r.list[len(r.list)-1]
		last.lines = append(last.lines, line)
		r.next = line.number + 1
	default:
		r.list = append(r.list, &passage{lines: []proseLine{line}})
		r.next = 0
		if continues {
			r.next = line.number + 1
		}
	}
}

// passagesOfGo returns the comments of a file, but for directives and the output of examples.
func passagesOfGo(text string) []*passage {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	lines := strings.Split(text, "\n")
	var r reader
	output := 0 // The line that continues an example's output.
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return r.list
		}
		if tok != token.COMMENT {
			continue
		}
		at := file.PositionFor(pos, false)
		whole := strings.TrimSpace(lines[at.Line-1][:at.Column-1]) == ""
		if body := strings.TrimPrefix(lit, "// "); whole && (at.Line == output || body == "Output:" || body == "Unordered output:") {
			output = at.Line + 1
			continue
		}
		for i, body := range strings.Split(lit, "\n") {
			line := proseLine{number: at.Line + i}
			if whole {
				line.width = utf8.RuneCountInString(lines[line.number-1])
			}
			line.text = bodyOf(body, &line.width)
			r.add(line, whole)
		}
	}
}

// bodyOf returns what a line of a comment has to be read. A directive has nothing. A line of code,
// or one of a single word, may be as wide as it is.
func bodyOf(text string, width *int) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/")
	body, isLine := strings.CutPrefix(text, "//")
	if isLine && body != "" && body[0] != ' ' {
		*width = 0
		if body[0] != '\t' {
			return ""
		}
	}
	body = strings.TrimSpace(body)
	if !strings.Contains(body, " ") {
		*width = 0
	}
	return body
}

// Comments of languages without a scanner, with what stands before them.
var (
	dashComment   = regexp.MustCompile(`^(\s*|.*\s)--(?:\s+(.*))?$`)
	scriptComment = regexp.MustCompile(`^(\s*)#(?:\s+(.*))?$`)
)

func passagesOfScript(text string, comment *regexp.Regexp) []*passage {
	var r reader
	for i, line := range strings.Split(text, "\n") {
		if m := comment.FindStringSubmatch(line); m != nil {
			whole := strings.TrimSpace(m[1]) == ""
			w := 0
			if whole && strings.Contains(m[2], " ") {
				w = utf8.RuneCountInString(line)
			}
			r.add(proseLine{number: i + 1, text: m[2], width: w}, whole)
		}
	}
	return r.list
}

// Parts of a page that are not prose, or can't be wrapped.
var (
	imageOfPage  = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	targetOfLink = regexp.MustCompile(`\]\([^)]*\)`)
	codeOfPage   = regexp.MustCompile("`[^`]*`")
)

func passagesOfPage(text string, users bool) []*passage {
	var r reader
	fenced, blank := false, true
	for i, raw := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(raw)
		if strings.HasPrefix(trimmed, "```") {
			fenced, blank = !fenced, true
			continue
		}
		indented := blank && strings.HasPrefix(raw, "    ") // A block of code.
		blank = trimmed == "" || indented
		if fenced || indented {
			continue
		}
		plain := targetOfLink.ReplaceAllString(imageOfPage.ReplaceAllString(raw, ""), "]")
		line := proseLine{number: i + 1, text: strings.TrimSpace(codeOfPage.ReplaceAllString(plain, "``")), width: utf8.RuneCountInString(plain)}
		table, heading := strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "#")
		if table {
			line.text = strings.TrimSpace(plain)
		}
		r.add(line, !table && !heading)
		if table || heading {
			last := r.list[len(r.list)-1]
			last.table, last.heading, last.users = table, heading, users
		}
	}
	return r.list
}
