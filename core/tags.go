package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits of tags (docs/rules.md 1).
const (
	// MaxTags is the maximum number of tags of a job.
	MaxTags = 8
	// MaxTagBytes is the maximum size of a tag in bytes.
	MaxTagBytes = 64
)

// ErrInvalidTag reports a tag that docs/rules.md 1 refuses, or too many tags. It is returned
// wrapped, with the mistake and its cure.
var ErrInvalidTag = errors.New("invalid tag")

// tagSeparator is between two tags. No tag has a control character.
const tagSeparator = "\x1f"

// Tags is a set of at most [MaxTags] tags, as [NewTags] makes it: equal sets are equal strings. The
// zero value is the empty set. [Tags.List] returns the tags.
type Tags string

// NewTags returns the set of the given tags; equal ones count once. It returns [ErrInvalidTag] for
// a tag that [ValidateTag] refuses, or for more than MaxTags different tags.
func NewTags(tags ...string) (Tags, error) {
	for _, tag := range tags {
		if err := ValidateTag(tag); err != nil {
			return "", err
		}
	}
	sorted := sortedTags(slices.Clone(tags))
	if len(sorted) > MaxTags {
		return "", fmt.Errorf("%w: there are %d tags, at most %d are allowed; leave some out",
			ErrInvalidTag, len(sorted), MaxTags)
	}
	return Tags(strings.Join(sorted, tagSeparator)), nil
}

// ValidateTag returns [ErrInvalidTag] unless tag is non-empty UTF-8 of at most [MaxTagBytes]
// without control characters.
func ValidateTag(tag string) error {
	return validateText(tag, MaxTagBytes, ErrInvalidTag, "give a text", "shorten it")
}

// sortedTags sorts tags by their bytes, and removes repeated ones.
func sortedTags(tags []string) []string {
	slices.Sort(tags)
	return slices.Compact(tags)
}

// Validate returns [ErrInvalidTag] unless [NewTags] can have made t.
func (t Tags) Validate() error {
	if t == "" {
		return nil
	}
	made, err := NewTags(t.split()...)
	if err == nil && made != t {
		err = fmt.Errorf("%w: %q is not in the form that core.NewTags returns; make the set with it",
			ErrInvalidTag, string(t))
	}
	return err
}

// List returns the tags in the order of their bytes, or nil for the empty set.
func (t Tags) List() []string {
	if t == "" {
		return nil
	}
	return t.split()
}

func (t Tags) split() []string { return strings.Split(string(t), tagSeparator) }

// Has reports whether the set has a tag.
func (t Tags) Has(tag string) bool { return slices.Contains(t.List(), tag) }

// Union returns the tags of both sets. If they have more than [MaxTags], those that are first in
// the order of their bytes stay (docs/rules.md 2). So the order of unions does not matter.
func (t Tags) Union(other Tags) Tags {
	switch {
	case other == "" || t == other:
		return t
	case t == "":
		return other
	}
	all := sortedTags(append(t.split(), other.split()...))
	return Tags(strings.Join(all[:min(len(all), MaxTags)], tagSeparator))
}
