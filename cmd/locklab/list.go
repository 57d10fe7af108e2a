package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"locklab/models"
	"locklab/scenarios"
	"locklab/sim"
)

// item is one line of a list.
type item struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Detail string `json:"detail,omitempty"`
}

// listing is one catalogue that list can show.
type listing struct {
	name  string
	items func() ([]item, error)
}

func listings() []listing {
	return []listing{
		{"scenarios", listScenarios}, {"designs", listDesigns}, {"resources", listResources},
		{"faults", listFaults}, {"parameters", listParameters}, {"presets", listPresets}, {"witnesses", listWitnesses},
	}
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [scenarios|designs|resources|faults|parameters|presets|witnesses]",
		Short: "List what there is",
		Example: `  locklab list
  locklab list designs
  locklab list parameters --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s wants one list or none for all of them, got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			chosen := listings()
			if len(args) == 1 {
				var err error
				if chosen, err = scenarios.Pick("list", chosen, func(l listing) string { return l.name }, args); err != nil {
					return err
				}
			}
			return a.list(chosen, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object: list name to items")
	return cmd
}

func (a *app) list(chosen []listing, asJSON bool) error {
	all := map[string][]item{}
	for i, l := range chosen {
		items, err := l.items()
		if err != nil {
			return err
		}
		if asJSON {
			all[l.name] = items
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintln(a.out, l.name)
		tw := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		for _, it := range items {
			fmt.Fprintf(tw, "  %s", it.Name)
			if it.About != "" {
				fmt.Fprintf(tw, "\t%s", it.About)
			}
			if it.Detail != "" {
				fmt.Fprintf(tw, " (%s)", it.Detail)
			}
			fmt.Fprintln(tw)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if asJSON {
		return json.NewEncoder(a.out).Encode(all)
	}
	return nil
}

func listScenarios() ([]item, error) {
	library, err := scenarios.Library()
	var out []item
	for _, s := range library {
		out = append(out, item{Name: s.Name, About: s.Title})
	}
	return out, err
}

func listDesigns() ([]item, error) {
	var out []item
	for _, d := range models.Designs() {
		out = append(out, item{Name: d.Name, About: d.Summary, Detail: "tokens: " + d.Tokens.String()})
	}
	return out, nil
}

func listResources() ([]item, error) {
	var out []item
	for _, r := range models.Resources() {
		it := item{Name: r.Name, About: r.Summary}
		if r.Needs != models.NoTokens {
			it.Detail = "needs " + r.Needs.String() + " tokens"
		}
		out = append(out, it)
	}
	return out, nil
}

func listFaults() ([]item, error) {
	var out []item
	for _, f := range sim.FaultSummaries() {
		out = append(out, item{Name: f.Name, About: f.Summary, Detail: "on " + f.On})
	}
	return out, nil
}

func listParameters() ([]item, error) {
	var out []item
	def := scenarios.DefaultParams()
	for _, q := range scenarios.Parameters() {
		out = append(out, item{Name: q.Name, About: q.Meaning, Detail: q.Range + "; default " + q.Get(&def)})
	}
	return out, nil
}

func listPresets() ([]item, error) {
	var out []item
	for _, p := range scenarios.Presets() {
		out = append(out, item{Name: p.Name, About: p.Numbers(), Detail: p.About})
	}
	return out, nil
}

func listWitnesses() ([]item, error) {
	var out []item
	for _, w := range scenarios.WitnessForms() {
		out = append(out, item{Name: w})
	}
	return out, nil
}
