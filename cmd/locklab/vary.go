package main

import (
	"errors"
	"fmt"
	"strings"

	"locklab/scenarios"
	"locklab/sim"
)

// varied makes of every case one for each value of the parameter that --vary
// names.
func (f *runFlags) varied(cases []scenarios.Case) ([]scenarios.Case, error) {
	if f.vary == "" {
		if len(f.measures) > 0 {
			return nil, errors.New("--measures chooses the columns of --vary; without it all measures are printed")
		}
		return cases, nil
	}
	name, list, ok := strings.Cut(f.vary, "=")
	if !ok || list == "" {
		return nil, fmt.Errorf("--vary: cannot read %q; write it like clients=5,10,20", f.vary)
	}
	var out []scenarios.Case
	for i := range cases {
		for value := range strings.SplitSeq(list, ",") {
			c := cases[i]
			if err := c.Params.Apply([]scenarios.Setting{{Name: name, Value: value}}); err != nil {
				return nil, fmt.Errorf("--vary: %w", err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// traceMode is how much of a run has to be kept for what will be printed of it.
func (o *runOutput) traceMode() sim.TraceMode {
	if o.told || o.page != nil || o.flags.json || o.flags.porcupine != "" {
		return sim.TraceRecord
	}
	return sim.TraceHash
}
