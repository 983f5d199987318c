// Command release writes a release into dist/<version>; "make release" runs it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidb-groups/tidb-groups/e2e/images"
	"github.com/tidb-groups/tidb-groups/e2e/release"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// example is the operator that a dry run builds: it has no tools and the fewest
// dependencies.
const example = "instance"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:           "release VERSION",
		Short:         "Write images, files to install, bills of materials and checksums into dist/VERSION",
		Args:          cobra.ExactArgs(1),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), cmd.OutOrStdout(), args[0], dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry", false, "build one operator twice, compare both, and keep neither")
	return cmd
}

func run(ctx context.Context, out io.Writer, version string, dry bool) error {
	if err := release.CheckVersion(version); err != nil {
		return err
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	revision, clean, err := readCommit(ctx, root)
	if err != nil {
		return err
	}
	o := release.Options{Version: version, Revision: revision, Deploy: filepath.Join(root, "deploy"), Compile: images.CompileOperators}
	if dry {
		return rehearseRelease(ctx, out, o)
	}
	if !clean {
		return errors.New("commit what has changed, or stash it: the images are labelled with a commit, and must be made from it; DRY=1 tries a release without")
	}
	dir := filepath.Join(root, "dist", version)
	if err := release.Write(ctx, dir, o); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "wrote %s; to check it: cd %s && sha256sum --check --quiet %s\n", dir, dir, release.ChecksumFile)
	return err
}

// rehearseRelease makes a release of one operator twice and compares both.
func rehearseRelease(ctx context.Context, out io.Writer, o release.Options) error {
	o.Operators = []string{example}
	dir, err := os.MkdirTemp("", "tidb-groups-rehearsal-")
	if err != nil {
		return fmt.Errorf("create directory for a dry run: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what a dry run made is not needed
	var sums [2][]byte
	for i := range sums {
		if err := release.Write(ctx, filepath.Join(dir, o.Version), o); err != nil {
			return err
		}
		if sums[i], err = os.ReadFile(filepath.Join(dir, o.Version, release.ChecksumFile)); err != nil {
			return fmt.Errorf("read checksums: %w", err)
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return fmt.Errorf("two runs gave different files:\n%s\n%s", sums[0], sums[1])
	}
	_, err = fmt.Fprintf(out, "%stwo runs gave the same %d files of %s with the operator %s alone\n", sums[0], bytes.Count(sums[0], []byte("\n")), o.Version, example)
	return err
}

// readCommit returns the commit that is checked out, and whether the files are as it has them.
func readCommit(ctx context.Context, root string) (revision string, clean bool, err error) {
	head, err := runGit(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return "", false, err
	}
	changes, err := runGit(ctx, root, "status", "--porcelain")
	if err != nil {
		return "", false, err
	}
	return strings.TrimSpace(head), changes == "", nil
}

func runGit(ctx context.Context, root string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}
