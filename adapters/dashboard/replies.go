package dashboard

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// What pages read of the API's replies; docs/httpapi.md says what each field is.

type listOf[R any] struct {
	Items     []R      `json:"items"`
	Next      string   `json:"next"`
	Unreached []string `json:"unreached"`
}

type octets struct {
	Data   *string `json:"data,omitempty"`
	Base64 *string `json:"data_base64,omitempty"`
}

// bytes returns what the API has sent.
func (o *octets) bytes() []byte {
	switch {
	case o.Data != nil:
		return []byte(*o.Data)
	case o.Base64 != nil:
		data, _ := base64.StdEncoding.DecodeString(*o.Base64) // the API has encoded it
		return data
	}
	return nil
}

func octetsOf(data []byte) octets {
	if utf8.Valid(data) {
		text := string(data)
		return octets{Data: &text}
	}
	text := base64.StdEncoding.EncodeToString(data)
	return octets{Base64: &text}
}

type payload struct {
	Score float64 `json:"score"`
	octets
}

// maxShown is how many bytes of a payload a page shows.
const maxShown = 8 << 10

// ScoreText is its score as people write numbers.
func (p *payload) ScoreText() string { return strconv.FormatFloat(p.Score, 'f', -1, 64) }

// Size is how many bytes it has.
func (p *payload) Size() int64 { return int64(len(p.bytes())) }

// Brief is its beginning in one line.
func (p *payload) Brief() string {
	data := p.bytes()
	if !utf8.Valid(data) {
		return "binary: " + hex.EncodeToString(data[:min(len(data), 24)])
	}
	runes := []rune(strings.Join(strings.Fields(string(data[:min(len(data), 1000)])), " "))
	if len(runes) > 120 {
		return shown(string(runes[:120])) + " …"
	}
	return shown(string(runes))
}

// Full is the payload as it may be read: JSON is indented, what is no text is dumped in
// hexadecimal.
func (p *payload) Full() string {
	data := p.bytes()
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
func (p *payload) Key() string { return base64.StdEncoding.EncodeToString(p.bytes()) }

// Raw is the payload as text, for a form.
func (p *payload) Raw() string { return string(p.bytes()) }

// Editable reports whether it can be edited as text: a form writes line ends in its own way.
func (p *payload) Editable() bool {
	data := p.bytes()
	return utf8.Valid(data) && !strings.ContainsAny(string(data), "\r\x00") && len(data) <= 64<<10
}

type jobRow struct {
	ID           string    `json:"id"`
	PerformAt    time.Time `json:"perform_at"`
	Retries      int       `json:"retries"`
	Recoveries   int       `json:"recoveries"`
	FirstPush    time.Time `json:"first_push"`
	LastError    string    `json:"last_error"`
	PayloadCount int       `json:"payload_count"`
	Payloads     []payload `json:"payloads"`
}

type claimedRow struct {
	jobRow
	Shard      string    `json:"shard"`
	Owner      string    `json:"owner"`
	Node       string    `json:"node"`
	Token      int64     `json:"token"`
	Since      time.Time `json:"since"`
	Begun      bool      `json:"begun"`
	LeaseOver  bool      `json:"lease_over"`
	LeaseUntil time.Time `json:"lease_until"`
	Cancelled  bool      `json:"cancelled"`
	Drop       bool      `json:"drop"`
}

type deadRow struct {
	ID           string    `json:"id"`
	ChangedAt    time.Time `json:"changed_at"`
	LastError    string    `json:"last_error"`
	Group        string    `json:"group"`
	PayloadCount int       `json:"payload_count"`
	Payloads     []payload `json:"payloads"`
}

type foundRow struct {
	Queue   string      `json:"queue"`
	Shard   string      `json:"shard"`
	Queued  *jobRow     `json:"queued"`
	Claimed *claimedRow `json:"claimed"`
	Dead    *deadRow    `json:"dead"`
}

// counts returns how many payloads there are in each place where the id is.
func (f *foundRow) counts() map[string]int {
	counts := make(map[string]int)
	if f.Queued != nil {
		counts["queued"] = f.Queued.PayloadCount
	}
	if f.Claimed != nil {
		counts["claimed"] = f.Claimed.PayloadCount
	}
	if f.Dead != nil {
		counts["dead"] = f.Dead.PayloadCount
	}
	return counts
}

// Where says in words where the id is.
func (f *foundRow) Where() string {
	var places []string
	if f.Queued != nil {
		places = append(places, "queued")
	}
	if f.Claimed != nil {
		places = append(places, "claimed")
	}
	if f.Dead != nil {
		places = append(places, "dead")
	}
	return strings.Join(places, ", ")
}

type ownerRow struct {
	Name      string `json:"name"`
	Draining  bool   `json:"draining"`
	Lanes     int    `json:"lanes"`
	Busy      int    `json:"busy"`
	MaxLanes  int    `json:"max_lanes"`
	QueueBusy int    `json:"queue_busy"`
	Parallel  int    `json:"parallel"`
}

type whyReply struct {
	Reason         string    `json:"reason"`
	Text           string    `json:"text"`
	Until          time.Time `json:"until"`
	Ahead          int       `json:"ahead"`
	Alone          string    `json:"alone"`
	RunningSince   time.Time `json:"running_since"`
	MaxRetries     int       `json:"max_retries"`
	MaxRunning     int       `json:"max_running"`
	Busy           int       `json:"busy"`
	Servers        []string  `json:"servers"`
	ServersUnknown bool      `json:"servers_unknown"`
	Owner          *ownerRow `json:"owner"`
	Found          foundRow  `json:"found"`
	AsOf           time.Time `json:"as_of"`
}
