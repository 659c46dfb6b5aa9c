package vectors

// Canonical is a case of canonical.json: a JSON value and its canonical form, or why it has none.
type Canonical struct {
	About string
	// JSON is the value. Base64 is it instead, if it can't be the text of a case.
	JSON   string
	Base64 []byte
	// Want is its canonical form. Refused is set in its place if it has none: syntax, number, member
	// or text.
	Want, Refused string
}

// Given returns the JSON of the case.
func (c *Canonical) Given() []byte {
	if c.Base64 != nil {
		return c.Base64
	}
	return []byte(c.JSON)
}
