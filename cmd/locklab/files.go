package main

import (
	"errors"
	"fmt"
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
	return scenarios.Load(data, name)
}

// fileSizeMax is the largest input file, in bytes, that is read.
const fileSizeMax = 64 << 20

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", name)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory; name a file", name)
	case info.Size() > fileSizeMax:
		return nil, fmt.Errorf("%s: %d bytes; at most %d are read", name, info.Size(), fileSizeMax)
	}
	return os.ReadFile(name)
}
