package broken

import (
	"context"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenTags() []brokenStore {
	return []brokenStore{
		{
			"forgets tags",
			"tags/are with the job in every place",
			wrapped(changesTags(func(core.Tags) core.Tags { return "" })),
		},
		{"keeps the last tags", "tags/of pushes unite", wrapped(keepsLastTags)},
		{"keeps the first tags", "tags/of pushes unite", wrapped(keepsFirstTags)},
		{
			"keeps one tag",
			"tags/are with the job in every place",
			wrapped(changesTags(func(t core.Tags) core.Tags { return tagsOf(t.List()[:min(1, len(t.List()))]) })),
		},
		{"sorts tags by letters", "vectors/tags", wrapped(seesTags(byLetters))},
		{"keeps the largest tags", "vectors/tags", wrapped(keepsLargestTags)},
		{"forgets tags at a failure", "tags/of a put-back and a push unite", wrapped(forgetsTagsAtFailure)},
		{"hides the tags of dead letters", "tags/stay with the dead letter", wrapped(buriesWithoutTags)},
		{"keeps the tags of a job that is done", "tags/are gone when the job is done", wrapped(keepsTagsForever)},
		{"imports without tags", "tags/are imported", wrapped(importsWithoutTags)},
		{"takes any tags", "tags/that are invalid are refused", wrapped(changesTags(func(t core.Tags) core.Tags {
			if t.Validate() != nil {
				return ""
			}
			return t
		}))},
		{
			"forgets tags in a transaction",
			"transaction/tags are with what is pushed and settled",
			wrapped(func(s full) full { return &forgetsTxTags{s} }),
		},
	}
}

func tagsOf(list []string) core.Tags {
	set, _ := core.NewTags(list...)
	return set
}

// changesTags changes the tags of each push.
func changesTags(change func(core.Tags) core.Tags) func(s full) full {
	return func(s full) full {
		return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
			for i := range r.Entries {
				r.Entries[i].Tags = change(r.Entries[i].Tags)
			}
			return s.Push(ctx, r)
		})
	}
}

// seesTags changes what Find returns of a queued job, given the tags of each push for it.
func seesTags(see func(pushed []core.Tags, stored core.Tags) core.Tags) func(s full) full {
	return func(s full) full {
		pushed := map[string][]core.Tags{}

		noting := replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
			for _, en := range r.Entries {
				if en.Tags != "" {
					pushed[en.ID] = append(pushed[en.ID], en.Tags)
				}
			}
			return s.Push(ctx, r)
		})

		return replace(noting, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
			found, err := s.Find(ctx, r)
			if found.Queued != nil && len(pushed[r.ID]) > 0 {
				found.Queued.Tags = see(pushed[r.ID], found.Queued.Tags)
			}
			return found, err
		})
	}
}

func keepsLastTags(s full) full {
	return seesTags(func(pushed []core.Tags, _ core.Tags) core.Tags { return pushed[len(pushed)-1] })(s)
}

func keepsFirstTags(s full) full {
	return seesTags(func(pushed []core.Tags, _ core.Tags) core.Tags { return pushed[0] })(s)
}

// keepsTagsForever has the tags of all pushes for an id.
func keepsTagsForever(s full) full {
	return seesTags(func(pushed []core.Tags, _ core.Tags) core.Tags {
		var all core.Tags
		for _, t := range pushed {
			all = all.Union(t)
		}
		return all
	})(s)
}

// byLetters has a lower-case letter before the same upper-case one.
func byLetters(_ []core.Tags, stored core.Tags) core.Tags {
	list := stored.List()
	for i := 1; i < len(list); i++ {
		if list[i-1] == "B" {
			list[i-1], list[i] = list[i], list[i-1]
		}
	}

	joined := ""
	for i, tag := range list {
		if i > 0 {
			joined += "\x1f"
		}
		joined += tag
	}

	return core.Tags(joined)
}

func keepsLargestTags(s full) full {
	return seesTags(func(pushed []core.Tags, _ core.Tags) core.Tags {
		seen := map[string]bool{}
		var all []string
		for _, t := range pushed {
			for _, tag := range t.List() {
				if !seen[tag] {
					seen[tag], all = true, append(all, tag)
				}
			}
		}
		return tagsOf(all[max(0, len(all)-core.MaxTags):])
	})(s)
}

// forgetsTagsAtFailure shows no tags of a job with an error, as a store does that writes the error
// over them.
func forgetsTagsAtFailure(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		if found.Queued != nil && found.Queued.Failures.Newest().Text != "" {
			found.Queued.Tags = ""
		}
		return found, err
	})
}

func buriesWithoutTags(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		if found.DeadLetter != nil {
			found.DeadLetter.Tags = ""
		}
		return found, err
	})
}

func importsWithoutTags(s full) full {
	return replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		for i := range r.Jobs {
			r.Jobs[i].Tags = ""
		}
		return s.Import(ctx, r)
	})
}

// forgetsTxTags pushes in transactions without tags.
type forgetsTxTags struct{ full }

func (s *forgetsTxTags) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return &untagged{tx}, err
}

type untagged struct{ env.Transaction }

func (tx *untagged) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	for i := range r.Entries {
		r.Entries[i].Tags = ""
	}
	return tx.Transaction.Push(ctx, r)
}
