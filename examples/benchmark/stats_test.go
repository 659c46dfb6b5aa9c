package main

import "testing"

func TestSummarize(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   summary
	}{
		{"one", []float64{3}, summary{3, 3, 3}},
		{"an odd number, in no order", []float64{9, 1, 4}, summary{4, 1, 9}},
		{"an even number is halved between", []float64{4, 1, 2, 100}, summary{3, 1, 100}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := summarize(tt.values); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSummarizeLeavesTheValuesInOrder(t *testing.T) {
	values := []float64{2, 1}
	summarize(values)
	if values[0] != 2 {
		t.Error("the values were sorted in place")
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}

	tests := []struct {
		name   string
		values []float64
		p      float64
		want   float64
	}{
		{"half of a hundred", hundred, 50, 50},
		{"99 of a hundred", hundred, 99, 99},
		{"all", hundred, 100, 100},
		{"none", hundred, 0, 1},
		{"99 of a few is the worst", []float64{1, 7, 3}, 99, 7},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := percentile(tt.values, tt.p); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
