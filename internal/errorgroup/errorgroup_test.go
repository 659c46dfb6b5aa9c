package errorgroup_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/errorgroup"
)

func TestErrorGroup(t *testing.T) {
	tests := []struct {
		name       string
		kind, text string
		want       string
	}{
		{"a text alone", "", "connection refused", "connection refused"},
		{"a type that says something", "*pgconn.PgError", "deadlock detected", "*pgconn.PgError: deadlock detected"},
		{"types that say nothing", "*errors.errorString", "no rows", "no rows"},
		{"and that of a wrapped error", "*fmt.wrapError", "no rows", "no rows"},
		{"a type without a text", "*pgconn.PgError", " \n", "*pgconn.PgError"},
		{"nothing at all", "", "", core.OtherGroup},
		{"numbers", "", "order 17 of 4, took 1.5s", "order # of #, took #s"},
		{"a number within a word", "", "user17 is gone", "user# is gone"},
		{"a time", "", "since 2026-11-23 18:06:24.123", "since # #"},
		{"an address", "", "dial tcp 10.0.0.7:5432: connect: refused", "dial tcp #: connect: refused"},
		{"a UUID", "", "no order 6fa459ea-ee8a-3ca4-894e-db77e160355e here", "no order # here"},
		{"a hash", "", "commit deadbeef1 is gone", "commit # is gone"},
		{"a word of hexadecimal digits", "", "it was defaced, effaced and deadbeef", "it was defaced, effaced and deadbeef"},
		{"hexadecimal with a prefix", "", "at 0xDEAD, at 0x", "at #, at #x"},
		{"a longer word that begins as a number", "", "0x1g and 12345678z", "#x#g and #z"},
		{"quoted parts", "", "no \"order \\\"a\\\" of\" `b c` 'd'", "no # # #"},
		{"an apostrophe", "", "can't do it's thing", "can't do it's thing"},
		{"a quote that does not end", "", `say "no`, `say "no`},
		{"a quote that ends behind what is looked at", "", `decode "` + strings.Repeat("x ", 600) + `": no`, "decode #"},
		{"a quote of another kind that does", "", "decode `" + strings.Repeat("x ", 600), "decode #"},
		{"an apostrophe in front of much", "", "the 'x of " + strings.Repeat("x", 1200), "the 'x of " + strings.Repeat("x", 54)},
		{"a quote that does not end in a line in front of others", "", "say \"no\n" + strings.Repeat("x", 1200), `say "no`},
		{"a quote in a text as long as what is looked at", "", `say "` + strings.Repeat("x", 1019), `say "` + strings.Repeat("x", 59)},
		{"a file", "", "open /var/lib/app/17.db: no such file", "open #: no such file"},
		{"a file beside the program", "", "open ./17.db, ~/x", "open #, #"},
		{"a file of Windows", "", `open C:\tmp\a.txt: denied`, "open #: denied"},
		{"a URL", "", "GET https://example.com/a?b=c#d: 503", "GET #: #"},
		{"one separator", "", "i/o timeout of orders/17", "i/o timeout of orders/#"},
		{"the first line", "", "\n boom \nat line 2", "boom"},
		{"white space", "", "a\t b  c", "a b c"},
		{"control characters and what is no UTF-8", "", "a\x00b\xffc", "a bc"},
		{"other languages", "", "Заказ 17 не найден", "Заказ # не найден"},
		{"the longest", "", strings.Repeat("a", 65), strings.Repeat("a", 64)},
		{"cut between characters", "", "a" + strings.Repeat("é", 40), "a" + strings.Repeat("é", 31)},
		{"a sign before a number", "", "issue #17 is open", "issue # is open"},
		{"white space of other scripts", "", "a\u00a0\u3000b", "a b"},
		{"an apostrophe before a quoted part", "", "can't say 'no' to it", "can't say # to it"},
		{"a quote after a number", "", "17'a' b", "#'a' b"},
		{"a quote that ends within a word", "", "say 'b'a, 'b'z, 'b'_, 'b'é, 'b'1", "say 'b'a, 'b'z, 'b'_, 'b'é, 'b'#"},
		{"a quote that ends before a sign", "", "say 'b'{", "say #{"},
		{"a quoted part before a word", "", `"a"b c"d"`, "#b c#"},
		{"a backslash at the end of what is quoted", "", "in `C:\\tmp\\` it's `x`", "in # it's #"},
		{"brackets before a path", "", "(open /a/b) failed of c/d/e", "(open #) failed of #"},
		{"a path after numbers", "", "1,2/a/b", "#/a/b"},
		{"the root", "", "/ is full", "/ is full"},
		{"the shortest hexadecimal number", "", "commits 1234abcd and 1234abc", "commits # and #abc"},
		{"a hash before a dash", "", "commit deadbeef1-z of deadbeef1-", "commit #-z of #-"},
		{"a hash within a word", "", "x_deadbeef1 deadbeef1z deadbeef1_ deadbeef1é", "x_deadbeef# deadbeef#z deadbeef#_ deadbeef#é"},
		{"a number at a full stop", "", "took .5s of 17.", "took .#s of #."},
		{"a type that is too long", "*" + strings.Repeat("t", 80), "boom", "*" + strings.Repeat("t", 63)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := errorgroup.Of(tt.kind, tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPanicGroup(t *testing.T) {
	for function, want := range map[string]string{
		"": "panic",
		"github.com/acme/app/billing.(*Service).Charge": "panic in billing.(*Service).Charge",
		"main.main.func1": "panic in main.main.func1",
		"github.com/acme/app.Map[go.shape.struct { github.com/acme/b.C }]": "panic in app.Map[go.shape.struct { github.com/acme/b.C }]",
		"main." + strings.Repeat("f", 100):                                 "panic in main." + strings.Repeat("f", 50),
	} {
		if got := errorgroup.OfPanic(function); got != want {
			t.Errorf("%q: got %q, want %q", function, got, want)
		}
	}
}

// A store that keeps very many failures must not pay for their groups.
func TestErrorGroupAllocatesItsNameAlone(t *testing.T) {
	text := strings.Repeat(`order 17: dial tcp 10.0.0.7:5432 "x" /a/b/c `, 100)
	if n := testing.AllocsPerRun(100, func() { errorgroup.Of("*net.OpError", text) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzErrorGroup(f *testing.F) {
	for _, text := range []string{"", "boom 17", `a "b" 'c' /d/e 0x1f`, "can't\x00\xff", strings.Repeat("日", 30), "a-1-b:2./", "'''"} {
		f.Add("*net.OpError", text)
		f.Add("", text)
	}
	f.Fuzz(func(t *testing.T, kind, text string) {
		got := errorgroup.Of(kind, text)
		checkGroupName(t, got)
		other := strings.Map(func(r rune) rune {
			if '1' <= r && r <= '9' {
				return '1' + '9' - r
			}
			return r
		}, text)
		if utf8.ValidString(text) && errorgroup.Of(kind, other) != got {
			t.Fatalf("%q and %q differ in numbers alone: %q and %q", text, other, got, errorgroup.Of(kind, other))
		}
		checkGroupName(t, errorgroup.OfPanic(text))
	})
}

// checkGroupName checks that a store keeps a name as it is.
func checkGroupName(t *testing.T, name string) {
	t.Helper()
	if kept := core.GroupName(name); kept != name {
		t.Fatalf("%q is kept as %q", name, kept)
	}
}

// Text is what Of has made of an error's text, whether the type is in the name or not.
func TestText(t *testing.T) {
	long := strings.Repeat("no such mailbox ", 9)
	for _, tt := range []struct {
		name, text string
		cut        bool
	}{
		{"timeout of # ms", "timeout of # ms", false},
		{"*url.Error: no route", "no route", false},
		{"main.Codes[int]: no route", "no route", false},
		{"smtp: 550", "smtp: 550", false},
		{"*url.Error", "*url.Error", false},
		{"*url.Error: ", "*url.Error: ", false},
		{"read a.b file: gone", "read a.b file: gone", false},
		{"a.b<script>: gone", "a.b<script>: gone", false},
		{errorgroup.Of("*mail.Error", long), long[:core.MaxGroupBytes-len("*mail.Error: ")], true},
		{"", "", false},
	} {
		if text, cut := errorgroup.Text(tt.name); text != strings.TrimSpace(tt.text) && text != tt.text || cut != tt.cut {
			t.Errorf("Text(%q) = %q, %t; want %q, %t", tt.name, text, cut, tt.text, tt.cut)
		}
	}
}
