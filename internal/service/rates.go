package service

import "github.com/skeinq/skein/inspect"

// RateQuery bounds the limiters of a queue.
type RateQuery struct {
	Limit int `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of limiters, those furthest ahead first"`
}

func (c *call) rate(q *RateQuery) (*Row[inspect.QueueRate], error) {
	rate, err := c.inspector.Rate(c.ctx, c.queue, q.Limit)
	if err != nil {
		return nil, err
	}
	return new(view[inspect.QueueRate](c, 0).Row(&rate)), nil
}

// StopRateBody is a stop of the rate of a queue, or of a key of it.
type StopRateBody struct {
	LimiterKey
	Seconds float64 `json:"seconds" doc:"how long no job of the queue may start, at most 86400"`
}

// LimiterKey names a limiter of a queue.
type LimiterKey struct {
	Key string `json:"key,omitempty" doc:"the key, such as a tenant, whose jobs alone are meant; absent for the whole queue"`
}

func (c *call) stopRate(b *StopRateBody) (*Done, error) {
	d, err := seconds("seconds", b.Seconds)
	if err != nil {
		return nil, err
	}
	return answered(c.inspector.StopRate(c.ctx, c.queue, b.Key, d))
}

func (c *call) resumeRate(b *LimiterKey) (*Done, error) {
	return answered(c.inspector.ResumeRate(c.ctx, c.queue, b.Key))
}
