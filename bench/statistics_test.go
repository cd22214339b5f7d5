package main

import (
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values []float64
		want   float64
	}{
		"none": {nil, 0},
		"one":  {[]float64{7}, 7},
		"odd":  {[]float64{9, 1, 5}, 5},
		"even": {[]float64{4, 1, 9, 2}, 3},
	} {
		if got := median(test.values); got != test.want {
			t.Errorf("%s: median = %v, want %v", name, got, test.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(200-i))
	}
	for p, want := range map[int]time.Duration{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := percentile(values, p); got != want {
			t.Errorf("percentile %d of 1 to 200 = %d, want %d", p, got, want)
		}
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("percentile of nothing = %d, want 0", got)
	}
	if got := percentile([]time.Duration{7}, 1); got != 7 {
		t.Errorf("percentile 1 of one value = %d, want the value", got)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	if got, want := spread([]float64{3000, 1000, 2500}, whole), "2,500 (1,000 to 3,000)"; got != want {
		t.Errorf("spread = %q, want %q", got, want)
	}
	if got, want := spread([]float64{1.25}, tenths), "1.2"; got != want {
		t.Errorf("spread of one value = %q, want %q", got, want)
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 200010: "200,010", 1234567.4: "1,234,567", -1500: "-1,500", -999: "-999"} {
		if got := whole(v); got != want {
			t.Errorf("whole(%v) = %q, want %q", v, got, want)
		}
	}
}
