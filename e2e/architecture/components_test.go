package architecture

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// registries are the files in which a component has to be entered, and in how many lines, as
// docs/contributing/add-a-component.md says. All else is in its own files, or made by make
// generate.
func registries() map[string]int {
	return map[string]int{
		"apis/groups/v1alpha1/components.go":        1, // the list of all rows
		"apis/groups/v1alpha1/tidbcluster_types.go": 1, // the field of its entries
		"operators/all/suite/suite.go":              2, // an import and the definition
	}
}

// relations are the other product files that name a component, for what it means to another
// one.
func relations() map[string]string {
	return map[string]string{
		"operators/tikvgroup/handover/handover.go": "leaders go to stores that may lead; it runs in the pods of TiKV, and is to be small: it imports no kinds",
		"shared/placement/needed.go":               "the owner of a table is told how to lower its TiFlash replicas",
		// The kinds that every cluster has.
		"operators/backup/job/plan.go":                "backups go through a TiDBGroup",
		"operators/tidbcluster/controller/observe.go": "the Restore of a new cluster goes through a TiDBGroup",
		"shared/certificate/judge.go":                 "Jobs of spec.sql show the certificate of TiDB",
		"shared/gate/gate.go":                         "others wait for a TiKVGroup",
	}
}

// sought is what product files may not say of a component. Of TiKV and TiDB, which every
// cluster has, it is a choice by the kind alone. A PDGroup is the cluster: it may be named.
func sought(c v1alpha1.ComponentInfo) *regexp.Regexp {
	switch c.Kind {
	case v1alpha1.KindPDGroup:
		return nil
	case v1alpha1.KindTiKVGroup, v1alpha1.KindTiDBGroup:
		return regexp.MustCompile("^(Kind" + c.Kind + "|Component" + strings.TrimSuffix(c.Kind, "Group") + ")$")
	}
	return regexp.MustCompile("(?i)" + c.Component)
}

// isOwnFile reports whether a file is of a component alone.
func isOwnFile(path string, c v1alpha1.ComponentInfo) bool {
	kind := strings.ToLower(c.Kind)
	return strings.HasPrefix(path, "operators/"+kind+"/") || path == "apis/groups/v1alpha1/"+kind+"_types.go"
}

// A component is a row of the table and the files of its own. What another place would have to
// know of it is a column of the table, or a question of component.Component.
func TestProductFilesNameNoComponent(t *testing.T) {
	found := map[string]bool{}
	eachNaming(t, func(path string, c v1alpha1.ComponentInfo, lines int) {
		found[path] = true
		if most, registry := registries()[path]; registry {
			assert.LessOrEqual(t, lines, most, "lines of %s that name %s", path, c.Component)
		} else {
			assert.Contains(t, relations(), path, "%s names %s: make it a column of v1alpha1.ComponentTable", path, c.Component)
		}
	})
	for path := range relations() {
		assert.True(t, found[path], "%s names no component: take it out of relations", path)
	}
	for path := range registries() {
		assert.True(t, found[path], "%s names no component: take it out of registries", path)
	}
}

// eachNaming visits every product file for every component that it names, with the number of
// lines that do.
func eachNaming(t *testing.T, visit func(path string, c v1alpha1.ComponentInfo, lines int)) {
	t.Helper()
	root, err := binaries.Root()
	require.NoError(t, err)
	eachSource(t, func(path string, _ *ast.File) {
		path = filepath.ToSlash(path)
		module, _, _ := strings.Cut(path, "/")
		if !slices.Contains([]string{"apis", "shared", "operators", "deploy"}, module) || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "/testkit/") || strings.Contains(path, "/zz_generated.") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		words := wordsOf(text)
		for _, c := range v1alpha1.ComponentTable() {
			is, lines := sought(c), map[int]bool{}
			for _, w := range words {
				if is != nil && !isOwnFile(path, c) && is.MatchString(w.text) {
					lines[w.line] = true
				}
			}
			if len(lines) > 0 {
				visit(path, c, len(lines))
			}
		}
	})
}

// word is a name or a text in the code of a file.
type word struct {
	text string
	line int
}

// wordsOf returns the names and the texts in code, comments left out.
func wordsOf(code []byte) []word {
	var out []word
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	s.Init(file, code, nil, 0)
	for {
		at, kind, text := s.Scan()
		switch kind {
		case token.EOF:
			return out
		case token.IDENT, token.STRING:
			out = append(out, word{text, file.Line(at)})
		default: // punctuation says nothing
		}
	}
}
