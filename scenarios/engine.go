package scenarios

import (
	"slices"

	"locklab/models"
)

// EngineError says why a case cannot run on the engine that was asked for.
type EngineError struct{ why error }

func (e *EngineError) Error() string { return e.why.Error() }

// EngineName is the name of the engine that the case's Redis servers run on.
func (c *Case) EngineName() string {
	if c.Engine == "" {
		return models.EngineNative
	}
	return c.Engine
}

// CheckEngineName refuses the name of an engine that there is none of; empty
// is the default.
func CheckEngineName(name string) error {
	if name == "" || slices.Contains(models.Engines(), name) {
		return nil
	}
	return Unknown("engine", name, models.Engines())
}

// OnEngine has cases run on an engine. Those that cannot are left out, which
// left counts; the error is the first reason if none is left.
func OnEngine(cases []Case, engine string, left LeftOut) ([]Case, LeftOut, error) {
	if engine == "" || engine == models.EngineNative {
		return cases, left, nil
	}
	var out []Case
	var first error
	for _, c := range cases {
		c.Engine = engine
		r, err := NewRunner(c)
		if err == nil {
			r.Close()
			out = append(out, c)
			continue
		}
		if first == nil {
			first = c.Scenario.Locate(err)
		}
		if left.Pairs++; left.Pairs == 1 {
			left.Design, left.Resource, left.Why = c.Design.Name, c.Resource.Name, first
		}
	}
	if len(out) == 0 {
		return nil, left, first
	}
	return out, left, nil
}
