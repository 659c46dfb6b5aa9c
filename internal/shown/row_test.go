package shown

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// part is a record inside another one.
type part struct {
	ID      string `json:"id" class:"id"`
	Comment string `json:"comment" class:"error"`
}

// sample has a field of each kind, and fields that must stay hidden.
type sample struct {
	Queue    string         `json:"-" class:"queue"`
	ID       string         `json:"id" class:"id" doc:"the id"`
	At       time.Time      `json:"at" class:"public"`
	Never    time.Time      `json:"never,omitzero" class:"public"`
	Took     time.Duration  `json:"took_seconds" class:"public"`
	Since    core.Instant   `json:"since" class:"public"`
	Shard    core.Shard     `json:"shard" class:"public" index:"its index" wide:"index"`
	Tags     []string       `json:"tags,omitempty" class:"tags"`
	Payloads []core.Payload `json:"payloads,omitempty" class:"payload"`
	Stored   []byte         `json:"data" class:"payload" base64:"the bytes in Base64" wide:"true"`
	Part     *part          `json:"part,omitempty" class:"public"`
	None     *part          `json:"none,omitempty" class:"public"`
	Parts    []part         `json:"parts" class:"public"`
	Plain    string         `json:"plain" doc:"a new field whose class was forgotten"`
	Number   int            `json:"number" class:"id"`
	Unnamed  string         `class:"public"`
	private  string
}

// marked is a redactor that marks the texts of each class, and shows what they are about.
type marked struct{ hidden string }

func (m marked) Shows(class string) bool { return class != "" && class != m.hidden }

func (m marked) Text(class string, of Of, text string) string {
	return fmt.Sprintf("%s of %s %s: %s", class, of.Queue, of.ID, text)
}

func (m marked) Bytes(class string, of Of, data []byte) []byte {
	return []byte(m.Text(class, of, string(data)))
}

func newSample() *sample {
	return &sample{
		Queue:    "orders",
		ID:       "a",
		At:       time.Date(2030, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600)),
		Took:     1500 * time.Millisecond,
		Since:    core.Instant(1e6),
		Shard:    core.Shard{Queue: "other", Index: 3},
		Tags:     []string{"vip"},
		Payloads: []core.Payload{{Data: []byte("p"), Score: 7}},
		Stored:   []byte("s"),
		Part:     &part{"b", "boom"},
		Parts:    []part{{"c", ""}},
		Plain:    "secret",
		Number:   5,
		Unnamed:  "secret",
		private:  "secret",
	}
}

func TestARowHasItsFieldsByClass(t *testing.T) {
	row := NewView[sample](marked{}, Of{Queue: "default", ID: "none"}).Row(newSample())
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"id of orders a: a","at":"2030-01-02T03:04:05Z","took_seconds":1.5,"since":"1970-01-01T00:00:01Z",` +
		`"shard":"other/3","index":3,"tags":["tags of orders a: vip"],` +
		`"payloads":[{"score":7,"data":"payload of orders a: p"}],"data":"payload of orders a: s",` +
		`"part":{"id":"id of orders b: b","comment":"error of orders b: boom"},` +
		`"parts":[{"id":"id of orders c: c","comment":"error of orders c: "}]}`
	if string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// A record with a shard for its queue is about the queue of the shard, and about its first id.
func TestARecordOfAShardIsOfItsQueue(t *testing.T) {
	record := struct {
		Shard  core.Shard `json:"shard" class:"queue"`
		ID     string     `json:"id" class:"id"`
		Before string     `json:"before" class:"id"`
		Error  string     `json:"error" class:"error"`
	}{core.Shard{Queue: "other", Index: 3}, "a", "b", "boom"}
	text, err := json.Marshal(viewOf(&record, Of{Queue: "default", ID: "none"}))
	want := `{"shard":"other/3","id":"id of other a: a","before":"id of other a: b","error":"error of other a: boom"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

func viewOf[T any](record *T, of Of) Row[T] { return NewView[T](marked{}, of).Row(record) }

// What a page reads is redacted as well, and has nothing that no class describes.
func TestTheValueOfARowIsRedacted(t *testing.T) {
	row := NewView[sample](marked{hidden: Payload}, Of{}).Row(newSample())
	v := row.Value()
	if v.ID != "id of orders a: a" || v.Part.Comment != "error of orders b: boom" || v.Shard.Index != 3 {
		t.Errorf("%+v", v)
	}
	if v.Plain != "" || v.Number != 0 || v.Unnamed != "" || v.private != "" || v.Stored != nil || v.Payloads != nil {
		t.Errorf("hidden values are shown: %+v", v)
	}
	if _, err := json.Marshal(row); err != nil {
		t.Error(err)
	}
}

func TestFieldsHaveTheirNames(t *testing.T) {
	wide := map[string]bool{}
	var second []string
	for _, f := range Fields(reflect.TypeFor[sample]()) {
		wide[f.Name] = f.Wide
		if f.second {
			second = append(second, f.Name+": "+f.Doc)
		}
	}
	if got := fmt.Sprint(second); got != "[index: its index data_base64: the bytes in Base64]" {
		t.Error(got)
	}
	for _, hidden := range []string{"-", ""} {
		if _, named := wide[hidden]; named {
			t.Errorf("%q is the name of a field", hidden)
		}
	}
	if wide["shard"] || !wide["index"] || !wide["data"] || !wide["data_base64"] {
		t.Errorf("%v", wide)
	}
}

// A time that JSON can't have hides no other field.
func TestATimeBeyondJSONIsNull(t *testing.T) {
	for _, year := range []int{292277, 10000, -1} {
		o := &Object{
			Fields: []Field{{Name: "at"}, {Name: "id"}},
			Values: []any{time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), "a"},
		}
		text, err := o.MarshalJSON()
		if want := `{"at":null,"id":"a"}`; err != nil || string(text) != want {
			t.Errorf("%d: %s, %v; want %s", year, text, err, want)
		}
	}
}
