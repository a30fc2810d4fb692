package opsview

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEstimateCoversAllPhasesOfARebuild(t *testing.T) {
	t.Parallel()
	measured := new(0.01) // seconds per event after the fill
	for what, c := range map[string]struct {
		build     Build
		filledFor *float64
		thenEach  *float64
		want      *float64
	}{
		"as the last build":                {Build{Phase: filling, Done: 400, Total: 1000, Rate: 100}, nil, measured, new(6.0 + 10)},
		"without one, as long as the fill": {Build{Phase: filling, Done: 400, Total: 1000, Rate: 100}, nil, nil, new(6.0 + 10)},
		"after the fill":                   {Build{Phase: "indexing", Done: 1000, Total: 1000, Rate: 100}, new(4.0), measured, new(6.0)},
		"later than the last build":        {Build{Phase: "comparing", Done: 1000, Total: 1000, Rate: 100}, new(11.0), measured, new(0.0)},
		"requested only":                   {Build{Phase: requested, Rate: 100}, nil, measured, nil},
		"waiting for an operator":          {Build{Phase: differs, Done: 1000, Total: 1000, Rate: 100}, new(4.0), measured, nil},
		"paused":                           {Build{Phase: filling, Done: 400, Total: 1000, Rate: 100, Paused: true}, nil, measured, nil},
		"stopped by an error":              {Build{Phase: filling, Done: 400, Total: 1000, Rate: 100, Error: new("no")}, nil, measured, nil},
		"no measured rate":                 {Build{Phase: filling, Total: 1000}, nil, measured, nil},
	} {
		c.build.estimate(c.filledFor, c.thenEach)
		require.Equal(t, c.want, c.build.ETASeconds, what)
	}
}
