package inspect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/jsonerror"
)

// ErrInvalidLine reports a line that is not a dead letter. The error has the number of the line.
var ErrInvalidLine = errors.New("invalid line")

// maxLine is the maximum size of a line in bytes. A reader holds a whole line in memory.
const maxLine = 1 << 30

// letterLine is a dead letter as a line of JSON. Times are microseconds since 1970, UTC. Scores are
// numbers with all their digits, so that they are read unchanged.
type letterLine struct {
	ID        string        `json:"id"`
	ChangedAt core.Instant  `json:"changed_at_us"`
	Error     string        `json:"error,omitempty"`
	FailedAt  core.Instant  `json:"failed_at_us,omitempty"`
	FailedOn  string        `json:"failed_on,omitempty"`
	Earlier   []lineFailure `json:"earlier_failures,omitempty"`
	Group     string        `json:"group,omitempty"`
	Tags      []string      `json:"tags,omitempty"`
	Payloads  []linePayload `json:"payloads"`
}

// lineFailure is a failure before the newest one.
type lineFailure struct {
	Error    string       `json:"error,omitempty"`
	FailedAt core.Instant `json:"failed_at_us,omitempty"`
	FailedOn string       `json:"failed_on,omitempty"`
}

// linePayload is a payload. Bytes that are UTF-8 are written as text, all others in Base64.
type linePayload struct {
	Score      float64 `json:"score"`
	Data       string  `json:"data,omitempty"`
	DataBase64 []byte  `json:"data_base64,omitempty"`
	Meta       string  `json:"meta,omitempty"`
	MetaBase64 []byte  `json:"meta_base64,omitempty"`
}

// WriteDeadLetters writes dead letters, such as those of [Inspector.Export], as one line of JSON
// each, and returns their number. This example is one line:
//
//	{"id":"order-1","changed_at_us":1790000000000000,"error":"boom","group":"*errors.errorString: boom",
//	 "payloads":[{"score":1.5,"data":"paid","meta":"trace=1"},{"score":2,"data_base64":"/w=="}]}
//
// WriteDeadLetters ends at the first error of letters or of w, and returns that error.
func WriteDeadLetters(w io.Writer, letters iter.Seq2[core.DeadLetter, error]) (written int, err error) {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for d, err := range letters {
		if err == nil {
			err = enc.Encode(lineOf(&d))
		}
		if err != nil {
			return written, errors.Join(err, out.Flush())
		}
		written++
	}
	return written, out.Flush()
}

func lineOf(d *core.DeadLetter) letterLine {
	newest := d.Failures.Newest()
	line := letterLine{
		ID:        d.ID,
		ChangedAt: d.ChangedAt,
		Error:     newest.Text,
		FailedAt:  newest.At,
		FailedOn:  newest.Node,
		Group:     d.Group,
		Tags:      d.Tags.List(),
	}

	for at, f := range d.Failures {
		if at > 0 {
			line.Earlier = append(line.Earlier, lineFailure{Error: f.Text, FailedAt: f.At, FailedOn: f.Node})
		}
	}

	for _, p := range d.Payloads {
		own := linePayload{Score: core.NormalScore(p.Score)}
		own.Data, own.DataBase64 = textOrBytes(p.Data)
		own.Meta, own.MetaBase64 = textOrBytes(p.Meta)
		line.Payloads = append(line.Payloads, own)
	}
	return line
}

func textOrBytes(b []byte) (string, []byte) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	return "", b
}

// ReadDeadLetters reads lines of [WriteDeadLetters], or of another program in the same format. If a
// line is not a dead letter, or has an unknown field, the list ends with [ErrInvalidLine]. If
// reading from r fails, the list ends with that error. A payload without data is an empty payload.
// ReadDeadLetters checks only the format; [Inspector.Import] refuses invalid ids, payloads and
// times. A line may have at most 1 GiB. Empty lines are skipped.
func ReadDeadLetters(r io.Reader) iter.Seq2[core.DeadLetter, error] {
	return func(yield func(core.DeadLetter, error) bool) {
		in := bufio.NewReader(r)
		for number := 1; ; number++ {
			text, end := readLine(in)
			if end != nil && !errors.Is(end, io.EOF) {
				yield(core.DeadLetter{}, fmt.Errorf("line %d: %w", number, end))
				return
			}

			if text = bytes.TrimSpace(text); len(text) > 0 {
				d, err := parseLine(text)
				if err != nil {
					err = fmt.Errorf("%w %d: %w", ErrInvalidLine, number, err)
				}
				if !yield(d, err) || err != nil {
					return
				}
			}

			if end != nil {
				return
			}
		}
	}
}

// readLine reads a line of at most maxLine bytes. At the end of the file it returns the rest
// together with io.EOF.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrInvalidLine, maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func parseLine(text []byte) (core.DeadLetter, error) {
	var line letterLine
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()

	if err := dec.Decode(&line); err != nil {
		return core.DeadLetter{}, jsonerror.Plain(err)
	}
	if dec.More() {
		return core.DeadLetter{}, errors.New("the line continues after the dead letter")
	}
	if !utf8.Valid(text) {
		return core.DeadLetter{}, errors.New(
			"it is not UTF-8; write bytes that are not UTF-8 into data_base64 and meta_base64")
	}

	tags, err := core.NewTags(line.Tags...)
	if err != nil {
		return core.DeadLetter{}, err
	}

	d := core.DeadLetter{
		ID:        line.ID,
		ChangedAt: line.ChangedAt,
		Group:     line.Group,
		Tags:      tags,
	}

	newest := lineFailure{line.Error, line.FailedAt, line.FailedOn}
	for _, f := range append([]lineFailure{newest}, line.Earlier...) {
		if f != (lineFailure{}) {
			d.Failures = append(d.Failures, core.Failure{At: f.FailedAt, Node: f.FailedOn, Text: f.Error})
		}
	}

	for i, p := range line.Payloads {
		data, twice := oneOf(p.Data, p.DataBase64)
		meta, again := oneOf(p.Meta, p.MetaBase64)
		if twice || again {
			return core.DeadLetter{}, fmt.Errorf("payload %d has its data or its meta twice, as text and in Base64", i)
		}
		d.Payloads = append(d.Payloads, core.Payload{Data: data, Score: p.Score, Meta: meta})
	}
	return d, nil
}

// oneOf returns the bytes of a text or of Base64, nil for neither.
func oneOf(text string, decoded []byte) (b []byte, both bool) {
	if text == "" {
		return decoded, false
	}
	return []byte(text), len(decoded) > 0
}
