package scenarios

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed library
var library embed.FS

// families lists the scenario families in the catalogue's order.
func families() []string {
	return []string{"kleppmann", "antirez", "lease", "redis", "postgres", "etcd", "zookeeper",
		"herd", "retry", "load", "leader", "semaphore", "quota", "barrier"}
}

// Library returns the built-in scenarios: the families in the catalogue's
// order, by name within each. The caller may change what it gets.
func Library() ([]*Scenario, error) {
	names, err := libraryNames()
	if err != nil {
		return nil, err
	}
	out := make([]*Scenario, len(names))
	for i, name := range names {
		if out[i], err = loadBuiltIn(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Find returns the built-in scenario of that name. For another name the error
// is one line that proposes the nearest one.
func Find(name string) (*Scenario, error) {
	names, err := libraryNames()
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, name) {
		return loadBuiltIn(name)
	}
	hint := Suggest(name, names)
	if hint == "" {
		hint = "see locklab list scenarios"
	}
	return nil, fmt.Errorf("no scenario is called %q; %s", oneLine(name), hint)
}

func loadBuiltIn(name string) (*Scenario, error) {
	file := "library/" + name + ".yaml"
	data, err := library.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := Load(data, "scenarios/"+file)
	if err == nil && s.Name != name {
		err = Pos{"scenarios/" + file, 1, 1}.Errorf("the scenario is called %s in a file called %s", s.Name, name)
	}
	return s, err
}

func libraryNames() ([]string, error) {
	var names []string
	err := fs.WalkDir(library, "library", func(file string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(file, ".yaml"); ok && err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(name, "library/"))
		}
		return err
	})
	order := families()
	rank := func(name string) int {
		family, _, _ := strings.Cut(name, "/")
		if i := slices.Index(order, family); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
	return names, err
}
