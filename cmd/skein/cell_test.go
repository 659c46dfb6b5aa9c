package main

import (
	"math"
	"testing"
)

func TestNumbersHaveNoExponentThatPeopleWouldNotWrite(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", -2.5: "-2.5", 1.7e9: "1700000000",
		1795694995.079894: "1795694995.079894", 1e15: "1000000000000000",
		0.00025: "0.00025", 1e300: "1e+300", -1e-9: "-1e-09", math.MaxFloat64: "1.7976931348623157e+308",
	} {
		if got := forPeople(v); got != want {
			t.Errorf("%g is shown as %s, want %s", v, got, want)
		}
	}
}
