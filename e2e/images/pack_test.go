package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func binary(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "binary")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o700))
	return file
}

func specOf(source string) Spec {
	return Spec{
		Ref: "pingcap/tiflash:v1", Entrypoint: []string{"/tiflash/tiflash"}, User: "65532:65532",
		Files: []File{{Path: "/tiflash/tiflash", Source: source, Mode: 0o755}, {Path: "/bin/sh", Link: "/tiflash/tiflash"}},
	}
}

func TestPackingTheSameContentGivesTheSameDigest(t *testing.T) {
	first, second := binary(t, "content"), binary(t, "content")
	require.NoError(t, os.Chtimes(second, time.Unix(1, 0), time.Unix(1, 0)))
	one, err := Pack(specOf(first))
	require.NoError(t, err)
	two, err := Pack(specOf(second))
	require.NoError(t, err)
	digestOne, err := one.Digest()
	require.NoError(t, err)
	digestTwo, err := two.Digest()
	require.NoError(t, err)
	assert.Equal(t, digestOne, digestTwo)

	three, err := Pack(specOf(binary(t, "other")))
	require.NoError(t, err)
	digestThree, err := three.Digest()
	require.NoError(t, err)
	assert.NotEqual(t, digestOne, digestThree)
}

func TestLayerHasParentsAndAWritableTmp(t *testing.T) {
	content, err := renderLayer(specOf(binary(t, "content")).Files)
	require.NoError(t, err)
	type entry struct {
		name string
		kind byte
		mode int64
		link string
	}
	var got []entry
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		assert.True(t, h.ModTime.Equal(epoch), h.Name)
		assert.Zero(t, h.Uid, h.Name)
		got = append(got, entry{h.Name, h.Typeflag, h.Mode, h.Linkname})
	}
	assert.Equal(t, []entry{
		{"bin/", tar.TypeDir, 0o755, ""},
		{"bin/sh", tar.TypeSymlink, 0o777, "/tiflash/tiflash"},
		{"tiflash/", tar.TypeDir, 0o755, ""},
		{"tiflash/tiflash", tar.TypeReg, 0o755, ""},
		{"tmp/", tar.TypeDir, 0o1777, ""},
	}, got)
}

func TestLayerRefusesPathsThatAreNotClean(t *testing.T) {
	for _, p := range []string{"relative", "/a/../b", "/a/"} {
		_, err := renderLayer([]File{{Path: p, Dir: true}})
		require.ErrorContains(t, err, "clean absolute path", p)
	}
}

func TestWriteKeepsOneArchivePerImageAndReusesIt(t *testing.T) {
	dir := t.TempDir()
	first, err := Write(dir, specOf(binary(t, "one")))
	require.NoError(t, err)
	assert.Equal(t, "docker.io/pingcap/tiflash:v1", first.Ref)
	before, err := os.Stat(first.Path)
	require.NoError(t, err)

	same, err := Write(dir, specOf(binary(t, "one")))
	require.NoError(t, err)
	assert.Equal(t, first, same)
	after, err := os.Stat(same.Path)
	require.NoError(t, err)
	assert.Equal(t, before.ModTime(), after.ModTime())

	other, err := Write(dir, specOf(binary(t, "two")))
	require.NoError(t, err)
	assert.NotEqual(t, first.Digest, other.Digest)
	assert.NoFileExists(t, first.Path)

	found, err := ReadArchives(other.Path)
	require.NoError(t, err)
	assert.Equal(t, []Archive{other}, found)
}

func TestOpenReadsDockerArchivesToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "saved.tar")
	content := []byte(`[{"Config":"c.json","RepoTags":["busybox:1"],"Layers":[]}]`)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "manifest.json", Size: int64(len(content)), Mode: 0o644}))
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(file, buf.Bytes(), 0o600))
	found, err := ReadArchives(file)
	require.NoError(t, err)
	assert.Equal(t, []Archive{{Ref: "docker.io/library/busybox:1", Path: file}}, found)
}

func TestFullName(t *testing.T) {
	for short, full := range map[string]string{
		"busybox:1":             "docker.io/library/busybox:1",
		"pingcap/pd:v8.5.7":     "docker.io/pingcap/pd:v8.5.7",
		"localhost/x:1":         "localhost/x:1",
		"registry.example/x:1":  "registry.example/x:1",
		"registry:5000/a/b:tag": "registry:5000/a/b:tag",
	} {
		assert.Equal(t, full, FullName(short))
	}
}

func TestChoose(t *testing.T) {
	refs := func(names ...string) []string {
		recipes, err := selectRecipes(names)
		require.NoError(t, err)
		var all []string
		for _, r := range recipes {
			all = append(all, r.ref)
		}
		return all
	}
	assert.Equal(t, []string{"pingcap/pd:v8.5.7", "pingcap/tikv:v8.5.7", "pingcap/tidb:v8.5.7", "pingcap/tiflash:v8.5.7"}, refs(SetStandins))
	assert.Equal(t, []string{"pingcap/pd:v8.5.0", "pingcap/tidb:v8.5.0", "pingcap/tikv:v8.5.0", "pingcap/tiflash:v8.5.0"}, refs(SetReal))
	assert.Equal(t, []string{"pingcap/tiproxy:v1.3.0"}, refs("tiproxy"))
	assert.Equal(t, []string{"pingcap/ticdc:v8.5.0"}, refs("ticdc"))
	assert.Equal(t, []string{"pingcap/dumpling:v8.5.0", "pingcap/tidb-lightning:v8.5.0", "versity/versitygw:dev"}, refs(SetBackup))
	assert.Equal(t, []string{"pingcap/pd:v8.1.0", "pingcap/tidb:v8.1.0", "pingcap/tikv:v8.1.0", "pingcap/tiflash:v8.1.0"}, refs(SetOlder))
	assert.Equal(t, []string{BusyboxRef}, refs(BusyboxRef))
	assert.Len(t, refs(SetOperators), len(v1alpha1.Programs()))
	assert.Equal(t, Refs(), refs())
	_, err := selectRecipes([]string{"nothing"})
	require.ErrorContains(t, err, `"nothing": unknown`)
}
