package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"locklab/models"
	"locklab/reports"
	"locklab/scenarios"
)

// againstFlag is --against of run, replay and exhaust.
type againstFlag struct{ designs []string }

func (f *againstFlag) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.designs, "against", nil, "also try the same plan on these designs (names, patterns, all) and every resource each can serve: what would have saved you")
}

// pick returns the designs that were asked for; none without the flag.
func (f *againstFlag) pick() ([]*models.Design, error) {
	if len(f.designs) == 0 {
		return nil, nil
	}
	designs, err := scenarios.PickDesigns(f.designs)
	if err != nil {
		return nil, fmt.Errorf("--against: %w", err)
	}
	return designs, nil
}

// counterfactuals runs a case's plan against other designs.
func (a *app) counterfactuals(ctx context.Context, c scenarios.Case, seed uint64, designs []*models.Design) ([]scenarios.Counterfactual, error) {
	bar := a.progress(len(designs)*len(models.Resources()), "against")
	defer func() { _ = bar.Finish() }()
	a.watch.Begin(func() string { return "--against, with the plan of " + scenarios.CommandOf(&c, seed) })
	defer a.watch.End()
	return scenarios.Against(ctx, c, seed, designs, func(i, of int) {
		bar.ChangeMax(of)
		_ = bar.Set(i)
		a.watch.End() // each run has its own time
		a.watch.Begin(func() string { return "--against, with the plan of " + scenarios.CommandOf(&c, seed) })
	})
}

// showAgainst prints the table, or one object a line.
func (a *app) showAgainst(ctx context.Context, c scenarios.Case, seed uint64, designs []*models.Design, asJSON bool) error {
	if len(designs) == 0 {
		return nil
	}
	rows, err := a.counterfactuals(ctx, c, seed, designs)
	if err != nil {
		return err
	}
	if !asJSON {
		fmt.Fprintln(a.out)
		return reports.Against(a.out, rows, a.style())
	}
	for i := range rows {
		line, err := reports.AgainstJSON(c.Scenario.Name, &rows[i])
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, string(line))
	}
	return nil
}
