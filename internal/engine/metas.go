package engine

import "context"

// MetaOf returns the Meta of the payload that a handler has begun which takes payloads one after
// another. ok is false if ctx is not the context of such a handler.
func MetaOf(ctx context.Context) (meta []byte, ok bool) {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	if !ok {
		return nil, false
	}
	b := c.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.byPayload || b.closed {
		return nil, false
	}
	return b.Claims[b.current].Payloads[b.payload].Meta, true
}

// Metas returns the Metas of the payloads of the job that a handler works, in order, without the
// payloads that its codec refused. It returns nil if ctx is not the context of a handler of one
// job.
func Metas(ctx context.Context) [][]byte {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	if !ok {
		return nil
	}
	b := c.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	i := c.job
	if i == wholeBatch {
		i = b.current
	}
	if i == wholeBatch {
		return nil
	}
	payloads := b.Claims[i].Payloads
	if b.byPayload {
		payloads = payloads[b.payload : b.payload+1]
	} else if r, refused := b.decodeFailures[i]; refused {
		payloads = payloads[:r.position]
	}
	metas := make([][]byte, 0, len(payloads))
	for position := range payloads {
		if b.byPayload || !b.undecodable[payloadOf{i, position}] {
			metas = append(metas, payloads[position].Meta)
		}
	}
	return metas
}
