package storekit_test

import (
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

func TestTagsAndErrorAreOneText(t *testing.T) {
	two, err := core.NewTags("vip", "import-7")
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		tags core.Tags
		text string
		want string
	}{
		{"", "", ""},
		{"", "boom", "boom"},
		{"", "\x1eboom", "\x1e\x1e\x1eboom"},
		{"", "boom\x1e", "boom\x1e"},
		{two, "", "\x1eimport-7\x1fvip\x1e"},
		{two, "boom", "\x1eimport-7\x1fvip\x1eboom"},
		{two, "\x1eboom\x1e", "\x1eimport-7\x1fvip\x1e\x1eboom\x1e"},
	} {
		got := storekit.WithTags(tt.tags, tt.text)
		if got != tt.want {
			t.Errorf("WithTags(%q, %q) = %q, want %q", tt.tags, tt.text, got, tt.want)
		}
		if tags, text := storekit.CutTags(got); tags != tt.tags || text != tt.text {
			t.Errorf("CutTags(%q) = %q, %q, want %q, %q", got, tags, text, tt.tags, tt.text)
		}
	}
	// The mark of an error that an older program has stored.
	if tags, text := storekit.CutTags("\x1eboom"); tags != "" || text != "\x1eboom" {
		t.Errorf("an unfinished mark became %q, %q", tags, text)
	}
}
