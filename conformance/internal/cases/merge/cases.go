// Package merge has the cases of payloads and tags that meet for one id.
//
//   - mergerule.go is about the merge rule of a queue, in every place where payloads merge.
//   - setmerge.go is about a change of that rule.
//   - tags.go is about the tags of jobs that merge.
//   - vectors.go runs the worked cases of docs/rules.md, which are in package vectors.
package merge

import "github.com/skeinq/skein/conformance/internal/env"

// Groups returns the cases of the room. The vectors run once: each file has dozens or hundreds of
// jobs for one queue, so most of the turns are warm.
func Groups() []env.Group {
	return []env.Group{
		{Name: "merge rule", Cases: append(mergeRuleCases(), setMergeCases()...)},
		{Name: "tags", Cases: tagsCases()},
		{Name: "vectors", Cases: vectorCases(), Once: true},
	}
}
