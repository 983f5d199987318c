// Toolbin prints the absolute path of a pinned program and builds it first when
// that is needed. The Makefile and people use it:
//
//	toolbin kube-apiserver     path of one program
//	toolbin --dir etcd kubectl a directory that holds all of these
//	toolbin --all              build every program, print every path
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "toolbin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	all := flag.Bool("all", false, "build every program and print every path")
	dir := flag.Bool("dir", false, "print one directory that holds every named program")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: toolbin [--all] [--dir] <program>...\nprograms: %v\n", binaries.Names())
		flag.PrintDefaults()
	}
	flag.Parse()
	names := flag.Args()
	if *all {
		names = binaries.Names()
	}
	if len(names) == 0 {
		flag.Usage()
		return errors.New("name a program, or --all")
	}
	if err := announceBuilds(names); err != nil {
		return err
	}
	if *dir {
		path, err := binaries.Dir(ctx, names...)
		if err != nil {
			return err
		}
		fmt.Println(path)
		return nil
	}
	paths, err := binaries.Paths(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println(paths[name])
	}
	return nil
}

// announceBuilds says how long several builds take together: each tells its own share when
// it begins.
func announceBuilds(names []string) error {
	builds, err := binaries.MissingBuilds(names...)
	if err != nil || len(builds) < 2 {
		return err
	}
	var programs []string
	var total time.Duration
	for _, b := range builds {
		programs, total = append(programs, b.Programs...), total+b.Estimate
	}
	fmt.Fprintf(os.Stderr, "the cache has no %s: they are built from source, once, in about %s on two cores\n", strings.Join(programs, ", "), binaries.FormatDuration(total))
	return nil
}
