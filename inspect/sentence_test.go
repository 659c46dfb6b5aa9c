package inspect

import "testing"

// A sentence is cut behind its first clause, of which nothing comes again in the rest.
func TestASentenceIsCutBehindItsClause(t *testing.T) {
	first, rest := say("one"), say("two").then(say("three"))
	for _, tt := range []struct {
		s                    Sentence
		whole, clause, after string
	}{
		{nil, "", "", ""},
		{first, "one", "one", ""},
		{first.then(nil), "one", "one", ""},
		{first.then(rest), "one; two; three", "one", "two; three"},
	} {
		clause, after := tt.s.Cut()
		if tt.s.String() != tt.whole || clause.String() != tt.clause || after.String() != tt.after {
			t.Errorf("%q is cut into %q and %q, want %q and %q", tt.s, clause, after, tt.clause, tt.after)
		}
	}
	if s := first.then(nil); len(s) != 1 {
		t.Errorf("a clause with nothing behind it ends with a break: %+v", s)
	}
}

// Two sentences that begin with the same one don't write over each other.
func TestSentencesShareNoRoom(t *testing.T) {
	s := append(make(Sentence, 0, 9), Part{Text: "one"})
	a, b := s.and(" a"), s.and(" b")
	c, d := s.then(say("c")), s.then(say("d"))
	for _, tt := range []struct {
		s    Sentence
		want string
	}{{a, "one a"}, {b, "one b"}, {c, "one; c"}, {d, "one; d"}} {
		if got := tt.s.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}

	clause, _ := c.Cut()
	_ = append(clause, Part{Text: "?"})
	if c.String() != "one; c" {
		t.Errorf("what is added to its clause changes the sentence: %q", c)
	}
}
