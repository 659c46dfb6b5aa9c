package core

// HeadScheduler is what all schedulers of this package are.
type HeadScheduler = headScheduler

// Assign and Member are how [SpreadSplitter] deals the shards of one queue.
var Assign = assign

type Member = member
