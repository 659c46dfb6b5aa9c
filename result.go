package skein

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
)

// SetResult sets the result of the job that a handler works, which is stored as JSON in the record
// of the job: see QueueOptions.Keep. The last call counts. The result is dropped unless the job
// ends as done. ctx is the handler's context. In a function of [Queue.BatchHandler] call
// [Job.SetResult].
//
// It returns [ErrInvalidPayload] for a value that JSON can't represent and for a result of more than
// 64 KiB, and [ErrInvalidOptions] for a queue that keeps no records. It returns an error that has no
// name if ctx is not the context of a job, or if the handler has returned.
func SetResult(ctx context.Context, v any) error {
	data, err := resultOf(v)
	if err != nil {
		return err
	}
	return execution.SetResult(ctx, data)
}

// SetResult is the function [SetResult] for this job.
func (j *Job[T]) SetResult(v any) error {
	data, err := resultOf(v)
	if err != nil {
		return err
	}
	return j.batch.SetResult(j.index, data)
}

func resultOf(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: the result: %w", core.ErrInvalidPayload, err)
	}
	return data, nil
}
