package hook

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Line is what the command lines of all programs have in common.
type Line struct {
	// Verb is install, or one of the program's own.
	Verb string
	// Into is where install copies the program; empty for other verbs.
	Into string
}

// ParseLine reads a command line, without the program's name: a verb, flags, and for
// install the place. verbs are the program's own, at least one; flags declares their flags.
// Whether all that a verb needs is there, the caller checks.
func ParseLine(args, verbs []string, flags func(*flag.FlagSet)) (Line, error) {
	all := append([]string{"install"}, verbs...)
	list := func(and string) string {
		return strings.Join(all[:len(all)-1], ", ") + " " + and + " " + all[len(all)-1]
	}
	if len(args) == 0 {
		return Line{}, fmt.Errorf("want %s", list("or"))
	}
	line := Line{Verb: args[0]}
	set := flag.NewFlagSet(line.Verb, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	flags(set)
	if err := set.Parse(args[1:]); err != nil {
		return line, fmt.Errorf("read flags: %w", err)
	}
	switch {
	case line.Verb == "install" && set.NArg() == 1:
		line.Into = set.Arg(0)
		return line, nil
	case line.Verb == "install":
		return line, errors.New("install wants the place to install to")
	case !slices.Contains(verbs, line.Verb):
		return line, fmt.Errorf("%q is none of %s", line.Verb, list("and"))
	case set.NArg() > 0:
		return line, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return line, nil
}
