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

// StopRateBody is a stop of the rate of a queue.
type StopRateBody struct {
	Seconds float64 `json:"seconds" doc:"how long no job of the queue may start, at most 86400"`
}

func (c *call) stopRate(b *StopRateBody) (*Done, error) {
	d, err := seconds("seconds", b.Seconds)
	if err != nil {
		return nil, err
	}
	return answered(c.inspector.StopRate(c.ctx, c.queue, "", d))
}

func (c *call) resumeRate(*NoBody) (*Done, error) {
	return answered(c.inspector.ResumeRate(c.ctx, c.queue, ""))
}
