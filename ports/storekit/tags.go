package storekit

import (
	"strings"

	"github.com/skeinq/skein/core"
)

// tagMark stands before and behind the tags in the result of [WithTags]. No tag has a control
// character.
const tagMark = "\x1e"

// WithTags returns the tags and the error text of a job or a dead letter as one text, so that a
// store can keep both in one place: without tags it is the error text. [CutTags] separates them.
//
// With tags it is the mark U+001E, the tags, the mark, and the error text. The tags are in order of
// their bytes, with U+001F between them. An error text that begins with the mark is stored with an
// empty list of tags.
func WithTags(tags core.Tags, text string) string {
	if tags == "" && !strings.HasPrefix(text, tagMark) {
		return text
	}
	return tagMark + string(tags) + tagMark + text
}

// CutTags returns the tags and the error text that [WithTags] has joined. Any other text is an
// error text without tags.
func CutTags(stored string) (core.Tags, string) {
	if remaining, marked := strings.CutPrefix(stored, tagMark); marked {
		if tags, text, ok := strings.Cut(remaining, tagMark); ok {
			return core.Tags(tags), text
		}
	}
	return "", stored
}
