package controlplane_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// orphanEnv makes this test binary start a control plane, say where it is and
// wait to be killed.
const orphanEnv = "CONTROLPLANE_TEST_ORPHAN"

var plane *controlplane.ControlPlane // what TestMain hands to the tests

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		orphan()
	}
	options := controlplane.Options{CRDPaths: []string{"testdata"}, ControllerManager: true}
	began := time.Now()
	os.Exit(controlplane.Main(m, options, func(cp *controlplane.ControlPlane) {
		fmt.Printf("control plane with controller manager up after %v\n", time.Since(began).Round(time.Millisecond))
		plane = cp
	}))
}

func orphan() {
	cp, err := controlplane.Start(context.Background(), controlplane.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(filepath.Dir(cp.Logs))
	select {} // until killed
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestGarbageCollectionDeletesDependents(t *testing.T) {
	c := newClient(t, plane.Config)
	namespace := controlplane.CreateNamespace(t, c)
	owner := configMap(namespace, "owner")
	require.NoError(t, c.Create(t.Context(), owner))
	dependent := configMap(namespace, "dependent")
	dependent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	require.NoError(t, c.Create(t.Context(), dependent))

	require.NoError(t, c.Delete(t.Context(), owner))

	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(dependent), dependent))
	}, time.Minute, 50*time.Millisecond)
}

func TestDeletedNamespacesGoAway(t *testing.T) {
	c := newClient(t, plane.Config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gone-"}}
	require.NoError(t, c.Create(t.Context(), namespace))
	require.NoError(t, c.Delete(t.Context(), namespace))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	}, time.Minute, 50*time.Millisecond)
}

func TestClaimsInUseAreProtected(t *testing.T) {
	c := newClient(t, plane.Config)
	namespace := controlplane.CreateNamespace(t, c)
	_, err := plane.Kubectl(t.Context(), "apply", "--namespace", namespace, "--filename", "testdata/manifests/pod-with-claim.yaml")
	require.NoError(t, err)
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: namespace, Name: "data"}
	require.Eventually(t, func() bool {
		return c.Get(t.Context(), key, claim) == nil && len(claim.Finalizers) > 0
	}, time.Minute, 50*time.Millisecond, "the controller adds its finalizer")

	require.NoError(t, c.Delete(t.Context(), claim))
	require.NoError(t, c.Get(t.Context(), key, claim), "the pod still uses it")

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "user"}}
	require.NoError(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), key, claim))
	}, time.Minute, 50*time.Millisecond, "nothing uses it")
}

func TestCRDsAreEstablishedAtStart(t *testing.T) {
	out, err := plane.Kubectl(t.Context(), "get", "crd", "things.testkit.groups.tidb.dev",
		"-o", `jsonpath={.status.conditions[?(@.type=="Established")].status}`)
	require.NoError(t, err)
	assert.Equal(t, "True", out)
}

func TestUsersMayDoWhatRBACGrantsAndNoMore(t *testing.T) {
	admin := newClient(t, plane.Config)
	namespace := controlplane.CreateNamespace(t, admin)
	grant := func(name string, subject rbacv1.Subject) {
		require.NoError(t, admin.Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}},
		}))
		require.NoError(t, admin.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{subject},
		}))
	}
	grant("group", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "writers"})
	grant("account", rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "operator"})
	writer, err := plane.User("anna", "writers")
	require.NoError(t, err)

	for name, config := range map[string]*rest.Config{
		"a user with a certificate of a granted group": writer,
		"a granted service account":                    plane.ServiceAccount(namespace, "operator"),
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, config)
			object := configMap(namespace, "")
			object.GenerateName = "by-user-"
			require.Eventually(t, func() bool { return c.Create(t.Context(), object) == nil },
				time.Minute, 50*time.Millisecond, "the authorizer learns of a new role by watching")
			err := c.Delete(t.Context(), object)
			assert.True(t, apierrors.IsForbidden(err), "got %v", err)
		})
	}
}

func TestNamespacesAreNamedAfterTheTestAndUnique(t *testing.T) {
	c := newClient(t, plane.Config)
	first, second := controlplane.CreateNamespace(t, c), controlplane.CreateNamespace(t, c)
	assert.Regexp(t, "^namespacesarenamedafterthetestandunique-", first)
	assert.NotEqual(t, first, second)
}

func TestStartNamesAMissingCRDPath(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{CRDPaths: []string{"testdata/nothing-here"}})
	require.ErrorContains(t, err, "nothing-here")
}

func TestASecondControlPlaneStartsAndStopsBesideTheFirst(t *testing.T) {
	began := time.Now()
	second, err := controlplane.Start(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	t.Logf("control plane without controller manager up after %v", time.Since(began).Round(time.Millisecond))
	assert.NotEqual(t, plane.Config.Host, second.Config.Host)

	t.Run("it serves", func(t *testing.T) {
		controlplane.CreateNamespace(t, newClient(t, second.Config))
	})

	began = time.Now()
	require.NoError(t, second.Stop())
	require.NoError(t, second.Stop(), "stopping twice is fine")
	t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
	assert.NoDirExists(t, filepath.Dir(second.Logs))
}

func TestNothingIsLeftWhenTheTestProcessIsKilled(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	root := strings.TrimSpace(line)
	require.DirExists(t, root)
	pids := notedProcesses(t, root)
	require.Len(t, pids, 2, "etcd and kube-apiserver")

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	assert.EventuallyWithT(t, func(t *assert.CollectT) {
		assert.NoDirExists(t, root)
		for name, pid := range pids {
			assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, name)
		}
	}, time.Minute, 20*time.Millisecond)
}

func notedProcesses(t *testing.T, root string) map[string]int {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(root, "*.pid"))
	require.NoError(t, err)
	pids := map[string]int{}
	for _, note := range notes {
		text, err := os.ReadFile(note)
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, 0), "%s runs", note)
		pids[filepath.Base(note)] = pid
	}
	return pids
}
