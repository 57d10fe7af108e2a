package main

import (
	"github.com/spf13/cobra"

	"locklab/reports"
)

func (a *app) explainCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain SCENARIO|FILE.yaml",
		Short: "Explain a scenario: its story, its plan, what is expected and why",
		Example: `  locklab explain kleppmann/gc-pause
  locklab explain kleppmann/fencing-read-modify-write
  locklab explain kleppmann/gc-pause --json`,
		Args: exactly(1, "one scenario (see locklab list) or one YAML file"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := findScenario(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return reports.ExplainJSON(a.out, s)
			}
			return reports.Explain(a.out, s, a.style())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}
