package exchange

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// Script is a Lua script as it is sent: a line of flags, and then its parts.
type Script struct {
	Text  string
	SHA   string
	Parts []Part
	// Reads is true if the server lets the script write nothing.
	Reads bool
}

// Part is a file of a script.
type Part struct {
	// Name is that of the file below lua, without .lua.
	Name string
	// First is the line of the script at which the file begins. Skipped is the number of lines that
	// are left out at the file's beginning.
	First, Skipped int
}

// NewScript joins parts, whose names are separated by spaces, and whose texts read returns. The
// flags of the last part come first.
func NewScript(read func(name string) string, names string) *Script {
	var flags string
	var body strings.Builder
	var parts []Part
	line := 2

	for _, name := range strings.Fields(names) {
		text, p := read(name), Part{Name: name, First: line}
		if strings.HasPrefix(text, "#!") {
			flags, text, _ = strings.Cut(text, "\n")
			p.Skipped = 1
		}
		body.WriteString(text)
		parts = append(parts, p)
		line += strings.Count(text, "\n")
	}

	return (&Script{Parts: parts}).withText(flags + "\n" + body.String())
}

func (s *Script) withText(text string) *Script {
	sum := sha1.Sum([]byte(text))
	flags, _, _ := strings.Cut(text, "\n")
	return &Script{
		Text:  text,
		SHA:   hex.EncodeToString(sum[:]),
		Parts: s.Parts,
		Reads: strings.Contains(flags, "no-writes"),
	}
}

// AllowOOM returns the script as one that a full server also runs, since it makes room.
func AllowOOM(s *Script) *Script {
	return s.withText(strings.Replace(s.Text, "#!lua\n", "#!lua flags=allow-oom\n", 1))
}

// scriptLine matches the server's name for a line of a script in an error.
var scriptLine = regexp.MustCompile(`user_script:\d+`)

// Locate returns an error of the server in which each line of the script is named by its file, as
// in lua/turn/turn.lua:30. It returns other errors unchanged, and also that of a plain command,
// which has no script.
func (s *Script) Locate(err error) error {
	var reply goredis.Error
	if s == nil || !errors.As(err, &reply) || !scriptLine.MatchString(reply.Error()) {
		return err
	}
	return replyError(scriptLine.ReplaceAllStringFunc(reply.Error(), func(found string) string {
		line, _ := strconv.Atoi(strings.TrimPrefix(found, "user_script:"))
		return s.fileLine(line)
	}))
}

// fileLine returns the file, below this directory, and the line in it that a line of the script
// comes from.
func (s *Script) fileLine(line int) string {
	for _, p := range slices.Backward(s.Parts) {
		if line >= p.First {
			return fmt.Sprintf("lua/%s.lua:%d", p.Name, line-p.First+1+p.Skipped)
		}
	}
	return fmt.Sprintf("lua/%s.lua:1", s.Parts[len(s.Parts)-1].Name) // the flags
}
