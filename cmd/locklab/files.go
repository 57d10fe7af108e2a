package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"locklab/scenarios"
)

// findScenario finds a scenario of the library by its name, or reads a file.
func findScenario(name string) (*scenarios.Scenario, error) {
	if !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
		return scenarios.Find(name)
	}
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	s, err := scenarios.Load(data, name)
	if err != nil {
		if _, notPlan := scenarios.LoadPlanFile(data, name); notPlan == nil {
			return nil, fmt.Errorf("%s: this is a plan file; use locklab replay %s", name, scenarios.ShellWord(name))
		}
		return nil, err
	}
	s.File = name
	return s, scenarios.CheckNames(s)
}

// findPlan reads a plan file.
func findPlan(name string) (*scenarios.PlanFile, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	f, err := scenarios.LoadPlanFile(data, name)
	if err != nil {
		if _, notScenario := scenarios.Load(data, name); notScenario == nil {
			return nil, fmt.Errorf("%s: this is a scenario, not a plan file; use locklab run %s", name, scenarios.ShellWord(name))
		}
		return nil, err
	}
	return f, nil
}

// fileSizeMax is the largest input file, in bytes, that is read.
const fileSizeMax = 64 << 20

// readFile reads a file, or a pipe to its end. What its size says is not
// believed: a device has none.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", name)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory; name a file", name)
	case info.Mode()&fs.ModeDevice != 0:
		return nil, fmt.Errorf("%s: is a device; name a file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, fileSizeMax+1))
	if len(data) > fileSizeMax {
		return nil, fmt.Errorf("%s: more than %d bytes; name a smaller file", name, fileSizeMax)
	}
	return data, err
}
