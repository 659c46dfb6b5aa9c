// Package record reads and writes what the store on Redis keeps below its keys: the bytes of jobs,
// claims, cancels, dead letters and set-aside records, and the values in the replies of scripts.
// It has no client and sends nothing.
//
//   - packed.go has the record of a job, and the parts that it has in common with that of a dead
//     letter, which letter.go has. aside.go has the record of one that could not be read.
//   - claim.go has claims, receipts and cancels.
//   - settlement.go has the settlements of a turn.
//   - reply.go reads replies, value after value.
//
// lua/lib/packed.lua and lua/turn/turn.lua have the same formats on the server's side. For a value
// that can't be read, functions return [ErrStored] or [ErrReply].
package record
