package core

// Assign and Member are how [SpreadSplitter] deals the shards of one queue.
var Assign = assign

type Member = member
