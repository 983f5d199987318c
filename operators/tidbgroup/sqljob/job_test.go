package sqljob

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqlrun"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const image = "tidb-groups/tidbgroup-operator:v7"

// sample is a group with runs of SQL.
func sample(runs ...v1alpha1.SQLRun) *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: "db", UID: types.UID("group")}}
	g.Spec.PDGroup.Name = "basic-pd"
	g.Spec.SQL = runs
	return g
}

func grants() v1alpha1.SQLRun {
	return v1alpha1.SQLRun{Name: "grants", Revision: 1, ConfigMap: &v1alpha1.KeyReference{Name: "my-sql", Key: "grants.sql"}}
}

func people() v1alpha1.SQLRun {
	return v1alpha1.SQLRun{Name: "people", Revision: 1, Users: &v1alpha1.InitialUsers{Secret: "people", Host: "10.1.%"}}
}

func hidden() v1alpha1.SQLRun {
	return v1alpha1.SQLRun{Name: "hidden", Revision: 3, Secret: &v1alpha1.KeyReference{Name: "my-sql", Key: "secret.sql"}, TimeoutSeconds: 30}
}

// parsed is what the program makes of a Job's command line.
func parsed(t *testing.T, job *batchv1.Job) sqlrun.Run {
	t.Helper()
	c := job.Spec.Template.Spec.Containers[0]
	require.Equal(t, []string{"/sql"}, c.Command)
	run, err := sqlrun.Parse(c.Args)
	require.NoError(t, err)
	return run
}

// volume returns a volume of a Job's pod by its name, which has to be mounted where
// the program looks, and nil if there is none.
func volume(t *testing.T, job *batchv1.Job, name, at string) *corev1.Volume {
	t.Helper()
	pod := &job.Spec.Template.Spec
	for i := range pod.Volumes {
		if pod.Volumes[i].Name != name {
			continue
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name == name {
				assert.True(t, m.ReadOnly)
				assert.True(t, at == m.MountPath || strings.HasPrefix(at, m.MountPath+"/"), "%s is read, %s is mounted", at, m.MountPath)
				return &pod.Volumes[i]
			}
		}
	}
	return nil
}

func TestDB10AJobReadsWhatItsEntryNames(t *testing.T) {
	t.Run("a ConfigMap", func(t *testing.T) {
		job := renderJob(sample(), new(grants()), image, 3306)
		run := parsed(t, job)
		assert.Equal(t, "basic-tidb.db.svc:3306", run.Address)
		assert.Equal(t, "key grants.sql of ConfigMap my-sql", run.Of)
		assert.False(t, run.Secret)
		assert.Equal(t, 600*time.Second, run.Within)
		from := volume(t, job, "sql", run.File).ConfigMap
		assert.Equal(t, "my-sql", from.Name)
		assert.Equal(t, []corev1.KeyToPath{{Key: "grants.sql", Path: "run.sql"}}, from.Items)
		assert.True(t, *from.Optional, "the program says what is missing, a pod would hang")
	})
	t.Run("a Secret", func(t *testing.T) {
		job := renderJob(sample(), new(hidden()), image, 4000)
		run := parsed(t, job)
		assert.True(t, run.Secret, "nothing of it is told")
		assert.Equal(t, "key secret.sql of Secret my-sql", run.Of)
		assert.Equal(t, 30*time.Second, run.Within)
		assert.Greater(t, *job.Spec.ActiveDeadlineSeconds, int64(30), "the program has its say first")
		from := volume(t, job, "sql", run.File).Secret
		assert.Equal(t, "my-sql", from.SecretName)
		assert.Equal(t, []corev1.KeyToPath{{Key: "secret.sql", Path: "run.sql"}}, from.Items)
		assert.True(t, *from.Optional)
	})
	t.Run("users", func(t *testing.T) {
		job := renderJob(sample(), new(people()), image, 4000)
		run := parsed(t, job)
		assert.True(t, run.Secret)
		assert.Equal(t, "10.1.%", run.Host)
		assert.Empty(t, run.Taken)
		from := volume(t, job, "sql", run.Users).Secret
		assert.Equal(t, "people", from.SecretName)
		assert.Empty(t, from.Items, "all keys")
		everywhere := people()
		everywhere.Users.Host = ""
		assert.Equal(t, "%", parsed(t, renderJob(sample(), &everywhere, image, 4000)).Host)
	})
}

func TestDB10AJobConnectsAsTheSpecSays(t *testing.T) {
	generates := &v1alpha1.Initialization{RootPassword: v1alpha1.RootPasswordGenerate, Users: &v1alpha1.InitialUsers{Secret: "first"}}
	named := &v1alpha1.Initialization{Users: &v1alpha1.InitialUsers{Secret: "first"}}
	for name, c := range map[string]struct {
		initialization *v1alpha1.Initialization
		edit           func(*v1alpha1.SQLRun)
		user           string
		secret, key    string
		needed         bool
		taken          string
	}{
		"root has no password":                     {nil, nil, "root", "", "", false, ""},
		"root's was generated":                     {generates, nil, "root", "basic-tidb-root", "password", true, "root"},
		"root's may be in the Secret of the users": {named, nil, "root", "first", "root", false, ""},
		"root's is named":                          {generates, func(r *v1alpha1.SQLRun) { r.PasswordSecret = &v1alpha1.KeyReference{Name: "a", Key: "b"} }, "root", "a", "b", true, "root"},
		"another user": {generates, func(r *v1alpha1.SQLRun) {
			r.User, r.PasswordSecret = "dba", &v1alpha1.KeyReference{Name: "a", Key: "b"}
		}, "dba", "a", "b", true, "root"},
		"root by name is root":                    {generates, func(r *v1alpha1.SQLRun) { r.User = "root" }, "root", "basic-tidb-root", "password", true, "root"},
		"another user never gets root's password": {generates, func(r *v1alpha1.SQLRun) { r.User = "dba" }, "dba", "", "", false, "root"},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := sample(), people()
			g.Spec.Initialization = c.initialization
			if c.edit != nil {
				c.edit(&r)
			}
			job := renderJob(g, &r, image, 4000)
			run := parsed(t, job)
			assert.Equal(t, c.user, run.User)
			assert.Equal(t, c.taken, run.Taken)
			assert.Equal(t, c.needed, run.PasswordOf != "")
			from := volume(t, job, "password", run.Password)
			if c.secret == "" {
				assert.Nil(t, from)
				assert.Empty(t, run.Password)
				return
			}
			require.NotNil(t, from)
			assert.Equal(t, c.secret, from.Secret.SecretName)
			require.Len(t, from.Secret.Items, 1, "no other key of the Secret")
			assert.Equal(t, c.key, from.Secret.Items[0].Key)
			assert.True(t, strings.HasSuffix(run.Password, "/"+from.Secret.Items[0].Path))
			assert.True(t, *from.Secret.Optional)
		})
	}
}

func TestDB10AJobIsRunOnceAndMayDoNothingElse(t *testing.T) {
	g := sample()
	g.Spec.ImagePullSecrets = []v1alpha1.LocalReference{{Name: "registry"}}
	g.Spec.NodeSelector = map[string]string{"pool": "db"}
	job := renderJob(g, new(grants()), image, 4000)
	assert.Equal(t, "basic-tidb-sql-grants-1", job.Name)
	assert.True(t, metav1.IsControlledBy(job, g))
	assert.Zero(t, *job.Spec.BackoffLimit)
	assert.Nil(t, job.Spec.TTLSecondsAfterFinished, "it stays until its end stands in status")
	pod := job.Spec.Template.Spec
	assert.Equal(t, corev1.RestartPolicyNever, pod.RestartPolicy)
	assert.False(t, *pod.AutomountServiceAccountToken)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	assert.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, pod.ImagePullSecrets)
	assert.Equal(t, g.Spec.NodeSelector, pod.NodeSelector)
	c := pod.Containers[0]
	assert.Equal(t, image, c.Image)
	assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	assert.Equal(t, corev1.TerminationMessagePathDefault, parsed(t, job).Result)

	service := labels.SelectorFromSet(workload.Selector(g))
	for _, of := range []map[string]string{job.Labels, job.Spec.Template.Labels} {
		assert.False(t, service.Matches(labels.Set(of)), "no client is sent to it, and no budget counts it")
		assert.True(t, labels.SelectorFromSet(Selector(g)).Matches(labels.Set(of)))
		assert.Equal(t, "grants", of[v1alpha1.LabelSQL])
	}
}

// A pod that is evicted, or whose node is lost, has been refused nothing. Users may be set again, and
// SQL of other entries may not.
func TestDB10UsersGetAnotherPodWhenTheirsIsEvicted(t *testing.T) {
	ignoresDisruptions := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
	assert.Equal(t, ignoresDisruptions, renderJob(sample(), new(people()), image, 4000).Spec.PodFailurePolicy)
	assert.Nil(t, renderJob(sample(), new(grants()), image, 4000).Spec.PodFailurePolicy)
	assert.Nil(t, renderJob(sample(), new(hidden()), image, 4000).Spec.PodFailurePolicy)
}

func TestTheNameOfAJobFitsALabelAndTellsRunsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, group := range []string{"a", strings.Repeat("g", 40)} {
		for _, run := range []string{"b", "b-1", strings.Repeat("r", 30), strings.Repeat("r", 29) + "s"} {
			for _, revision := range []int32{1, 11, 2147483647} {
				name := jobName(group, &v1alpha1.SQLRun{Name: run, Revision: revision})
				assert.LessOrEqual(t, len(name), 63)
				assert.False(t, seen[name], name)
				seen[name] = true
			}
		}
	}
}

// A Job of another group is no Job of this one, and is not to be deleted for it.
func TestTheNameOfAJobTellsGroupsApart(t *testing.T) {
	name := func(group, run string) string {
		return jobName(group, &v1alpha1.SQLRun{Name: run, Revision: 1})
	}
	assert.NotEqual(t, name("g", "x-sql-y"), name("g-sql-x", "y"))
	assert.NotEqual(t, name("g", "sql-x"), name("g-sql", "x"), "what stands between them overlaps")
	long := strings.Repeat("x", 25)
	assert.NotEqual(t, name(strings.Repeat("g", 30), long+"-sql-y"), name(strings.Repeat("g", 30)+"-sql-"+long, "y"), "and what is cut off counts")
	assert.LessOrEqual(t, len(name(strings.Repeat("g", 30)+"-sql-"+long, "y")), maxJobName)
	assert.Equal(t, "g-sql-x-1", name("g", "x"), "others keep the name that they have")
}

// A run that has begun is not run again by itself.
func TestDB10TheNodeOfARunIsNotRemovedToSaveCosts(t *testing.T) {
	pod := renderJob(sample(), new(people()), image, 4000).Spec.Template.Annotations
	assert.Equal(t, map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}, pod)
}
