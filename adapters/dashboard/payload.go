package dashboard

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skeinq/skein/internal/service"
)

// maxShown is the maximum number of bytes of a payload on a page.
const maxShown = 8 << 10

// payload is a payload as pages show it.
type payload struct{ service.Payload }

func payloadsOf(list []service.Row[service.Payload]) []payload {
	shown := make([]payload, len(list))
	for at := range list {
		shown[at] = payload{*list[at].Value()}
	}
	return shown
}

// ScoreText returns the score as people write numbers.
func (p *payload) ScoreText() string { return scoreText(p.Score) }

func scoreText(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }

// Size returns the number of the payload's bytes.
func (p *payload) Size() int64 { return int64(len(p.Data)) }

// Brief returns the payload's beginning in one line.
func (p *payload) Brief() string {
	data := p.Data
	if !utf8.Valid(data) {
		return "binary: " + hex.EncodeToString(data[:min(len(data), 24)])
	}
	runes := []rune(strings.Join(strings.Fields(string(data[:min(len(data), 1000)])), " "))
	if len(runes) > 120 {
		return shown(string(runes[:120])) + " …"
	}
	return shown(string(runes))
}

// Full returns the payload for reading: JSON is indented, and bytes that are not UTF-8 are dumped
// in hexadecimal.
func (p *payload) Full() string {
	data := p.Data
	cut := ""
	if len(data) > maxShown {
		cut = fmt.Sprintf("\n… of %d bytes", len(data))
	}

	if !utf8.Valid(data) {
		return hex.Dump(data[:min(len(data), maxShown/4)]) + cut
	}

	text := string(data)
	var indented strings.Builder
	if len(data) <= maxShown && json.Valid(data) {
		encoder := json.NewEncoder(&indented)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if encoder.Encode(json.RawMessage(data)) == nil {
			text = strings.TrimSuffix(indented.String(), "\n")
		}
	}

	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "")
	}
	return readable(text) + cut
}

// Key names the payload in forms.
func (p *payload) Key() string { return base64.StdEncoding.EncodeToString(p.Data) }

// Raw is the payload as text, for a form.
func (p *payload) Raw() string { return string(p.Data) }

// Editable reports whether it can be edited as text: a form writes line ends in its own way.
func (p *payload) Editable() bool {
	data := p.Data
	return utf8.Valid(data) && !strings.ContainsAny(string(data), "\r\x00") && len(data) <= 64<<10
}
