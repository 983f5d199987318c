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

// Missing returns the builds that [Paths] would make for the named programs, one
// for each tool module, in the order in which they are named first. It builds
// nothing.
func Missing(names ...string) ([]Build, error) {
	table := programs()
	root, err := Root()
	if err != nil {
		return nil, err
	}
	var dirs []string
	builds := map[string]*Build{}
	for _, name := range names {
		p, known := table[name]
		if !known {
			return nil, unknown(name)
		}
		if asset(name) != "" {
			continue
		}
		place, err := locate(root, p.module)
		if err != nil {
			return nil, err
		}
		if executable(place.program(name)) {
			continue
		}
		if builds[p.module.dir] == nil {
			builds[p.module.dir] = &Build{Estimate: p.module.estimate}
			dirs = append(dirs, p.module.dir)
		}
		if b := builds[p.module.dir]; !slices.Contains(b.Programs, name) {
			b.Programs = append(b.Programs, name)
		}
	}
	out := make([]Build, 0, len(dirs))
	for _, dir := range dirs {
		out = append(out, *builds[dir])
	}
	return out, nil
}

func unknown(name string) error {
	return fmt.Errorf("find program %q: unknown name, known are %s", name, strings.Join(Names(), ", "))
}
