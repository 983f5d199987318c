package binaries

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Build is a build that [Paths] would have to make.
type Build struct {
	// Programs that come of it.
	Programs []string
	// Estimate is how long it takes on two cores.
	Estimate time.Duration
}

// MissingBuilds returns the builds that [Paths] would make for the named programs, one
// for each tool module and edition, in the order in which they are named first. It builds
// nothing.
func MissingBuilds(names ...string) ([]Build, error) {
	table := knownPrograms()
	root, err := Root()
	if err != nil {
		return nil, err
	}
	var order []string
	builds := map[string]*Build{}
	for _, name := range names {
		p, known := table[name]
		if !known {
			return nil, unknownProgramError(name)
		}
		if assetPath(name) != "" {
			continue
		}
		place, err := locateModule(root, p.module)
		if err != nil {
			return nil, err
		}
		if isExecutable(place.program(name)) {
			continue
		}
		key := p.module.buildName()
		if builds[key] == nil {
			builds[key] = &Build{Estimate: p.module.estimate}
			order = append(order, key)
		}
		if b := builds[key]; !slices.Contains(b.Programs, name) {
			b.Programs = append(b.Programs, name)
		}
	}
	out := make([]Build, 0, len(order))
	for _, key := range order {
		out = append(out, *builds[key])
	}
	return out, nil
}

func unknownProgramError(name string) error {
	return fmt.Errorf("find program %q: unknown name, known are %s", name, strings.Join(Names(), ", "))
}
