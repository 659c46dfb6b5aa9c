package jsonerror

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// Errors have the names of fields and no Go types.
func TestPlain(t *testing.T) {
	type inner struct {
		Score float64 `json:"score"`
		Data  []byte  `json:"data"`
	}
	type outer struct {
		ID       string  `json:"id"`
		At       int64   `json:"at"`
		Done     *bool   `json:"done"`
		Payloads []inner `json:"payloads"`
	}
	for text, want := range map[string]string{
		`{"id":5}`:                         "the field id is a number; give a text",
		`{"at":1.5}`:                       "the field at is 1.5; give a whole number in its range",
		`{"at":99999999999999999999}`:      "the field at is 99999999999999999999; give a whole number in its range",
		`{"done":"yes"}`:                   "the field done is a text; give true or false",
		`{"id":true}`:                      "the field id is true or false; give a text",
		`{"payloads":{}}`:                  "the field payloads is an object; give a list",
		`{"payloads":[{"score":"high"}]}`:  "the field payloads.score is a text; give a number",
		`{"payloads":[{"data":7}]}`:        "the field payloads.data is a number; give a text in Base64",
		`[]`:                               "it is a list; give an object",
		`{"ids":[]}`:                       `unknown field "ids"`,
		`{"id":"a"`:                        "the JSON ends too early",
		``:                                 "the JSON ends too early",
		`nonsense`:                         "invalid character 'o' in literal null (expecting 'u')",
		`{"payloads":[{"data":"not it"}]}`: "illegal base64 data at input byte 3",
	} {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		if got := Plain(dec.Decode(&outer{})); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	if other := errors.New("boom"); Plain(nil) != nil || Plain(other) != other {
		t.Error("it changes other errors")
	}
}
