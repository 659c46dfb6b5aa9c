package execution

import "context"

// MetaOf returns the Meta of the payload that a handler has begun, if the handler takes payloads
// one after another. ok is false if ctx is the context of another handler, or of no handler, or if
// its job has ended.
func MetaOf(ctx context.Context) (meta []byte, ok bool) {
	b, job, unlock := working(ctx)
	defer unlock()
	if job == wholeBatch || !b.byPayload {
		return nil, false
	}
	return b.Claims[job].Payloads[b.payload].Meta, true
}

// Metas returns the Metas of the payloads of the job that a handler works, in order, without the
// payloads that its codec refused. It returns nil if ctx is not the context of a handler of one
// job, or if that job has ended.
func Metas(ctx context.Context) [][]byte {
	b, job, unlock := working(ctx)
	defer unlock()
	if job == wholeBatch {
		return nil
	}
	payloads := b.Claims[job].Payloads
	if b.byPayload {
		payloads = payloads[b.payload : b.payload+1]
	} else if r, refused := b.decodeFailures[job]; refused {
		payloads = payloads[:r.position]
	}
	metas := make([][]byte, 0, len(payloads))
	for position := range payloads {
		if b.byPayload || !b.undecodable[payloadOf{job, position}] {
			metas = append(metas, payloads[position].Meta)
		}
	}
	return metas
}

// working returns the locked batch and the job that a handler works, whose context is ctx. The job
// is wholeBatch if there is no such job: for another context, for the context of a handler of a
// whole batch, and for that of a job that has ended.
func working(ctx context.Context) (b *Batch, job int, unlock func()) {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	if !ok {
		return nil, wholeBatch, func() {}
	}
	b = c.batch
	b.mu.Lock()
	if b.ended(c.job) || b.current == wholeBatch {
		return b, wholeBatch, b.mu.Unlock
	}
	return b, b.current, b.mu.Unlock
}
