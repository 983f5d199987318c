package volumeclaim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func instance(changes ...func(*v1alpha1.Instance)) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: "db", UID: "instance"}}
	for _, change := range changes {
		change(i)
	}
	return i
}

// claim is one that an operator has made for the Instance, changed.
func claim(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "tikv-basic-tikv-0", Namespace: "db", UID: "claim"}}
	c.Labels = map[string]string{v1alpha1.LabelInstance: "basic-tikv-0", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	c.Annotations = map[string]string{v1alpha1.AnnotationMadeBy: "instance"}
	for _, change := range changes {
		change(c)
	}
	return c
}

// bare is a claim that says nothing of anybody.
func bare(c *corev1.PersistentVolumeClaim) { c.Labels, c.Annotations = nil, nil }

func labelled(instance, manager string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Labels = map[string]string{v1alpha1.LabelInstance: instance, v1alpha1.LabelManagedBy: manager}
	}
}

func annotated(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{key: value} }
}

func owned(c *corev1.PersistentVolumeClaim) {
	c.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet"}}
}

// P3: the table "Whose claim it is" of docs/tasks/volumes.md.
func TestP3WhichClaimsAreOurs(t *testing.T) {
	for name, c := range map[string]struct {
		claim    *corev1.PersistentVolumeClaim
		recorded types.UID
		ours     bool
	}{
		"one that an operator has made":               {claim(), "", true},
		"one of our labels alone":                     {claim(annotated("a", "b")), "", true},
		"one of our labels that has an owner":         {claim(owned), "", true},
		"the recorded one that has lost its labels":   {claim(bare), "claim", true},
		"the recorded one that has an owner":          {claim(bare, owned), "claim", true},
		"one in place of the recorded one":            {claim(bare), "lost", true},
		"one in its place that has an owner":          {claim(bare, owned), "lost", false},
		"one in its place that Helm manages":          {claim(bare, labelled("", "helm")), "lost", false},
		"one that a user has given by name":           {claim(bare, annotated(v1alpha1.AnnotationAdopt, "basic-tikv-0")), "", true},
		"one that a user has given to another member": {claim(bare, annotated(v1alpha1.AnnotationAdopt, "basic-tikv-1")), "", false},
		"one that was given and has an owner":         {claim(bare, owned, annotated(v1alpha1.AnnotationAdopt, "basic-tikv-0")), "", false},
		"one that says nothing":                       {claim(bare), "", false},
		"one of the name of a manager alone":          {claim(labelled("", v1alpha1.ManagedBy)), "", false},
		"one of another member":                       {claim(labelled("basic-tikv-1", v1alpha1.ManagedBy)), "claim", false},
		"one of another member that was given":        {claim(labelled("basic-tikv-1", ""), annotated(v1alpha1.AnnotationAdopt, "basic-tikv-0")), "claim", false},
	} {
		assert.Equal(t, c.ours, mayUseClaim(instance(), c.claim, c.recorded), name)
	}
}

// P3: a claim is recreated only while there can be no data in it.
func TestP3AClaimIsRecreatedOnlyIfItNeverHadAVolume(t *testing.T) {
	class := func(name *string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = name }
	}
	slow, fast := class(ptr.To("slow")), ptr.To("fast")
	classes := map[string]*storagev1.StorageClass{"fast": {}, "there": {}}
	for name, c := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		wanted  *string
		node    string
		classes map[string]*storagev1.StorageClass
		want    bool
	}{
		"of another class":                          {claim(slow), fast, "", classes, true},
		"of the same class":                         {claim(class(fast)), fast, "", classes, false},
		"without a class, if one is wanted":         {claim(class(nil)), fast, "", classes, true},
		"of a class that is not there, if none is":  {claim(slow), nil, "", classes, true},
		"of one that is there, perhaps the default": {claim(class(ptr.To("there"))), nil, "", classes, false},
		"of one that the operator may not read":     {claim(slow), nil, "", nil, false},
		"of a static volume, if none is wanted":     {claim(class(ptr.To(""))), nil, "", classes, false},
		"with a volume":                             {claim(slow, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }), fast, "", classes, false},
		"that is bound":                             {claim(slow, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound }), fast, "", classes, false},
		"that goes already":                         {claim(slow, func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }), fast, "", classes, false},
		"that no operator has made":                 {claim(slow, annotated("a", "b")), fast, "", classes, false},
		"that a user has given":                     {claim(slow, func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationAdopt] = "basic-tikv-0" }), fast, "", classes, false},
		"of another member":                         {claim(slow, labelled("basic-tikv-1", v1alpha1.ManagedBy)), fast, "", classes, false},
		"whose pod has a node that mounts it":       {claim(slow), fast, "n1", classes, false},
		"whose pod has none yet":                    {claim(slow), fast, "-", classes, true},
		"that does not exist":                       {nil, fast, "", classes, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &observation.Snapshot{Instance: instance(), Classes: c.classes, Now: clock()}
			if c.node != "" {
				s.Pod = &corev1.Pod{}
			}
			if c.node == "n1" {
				s.Pod.Spec.NodeName = c.node
			}
			assert.Equal(t, c.want, IsReplaceable(s, observation.Volume{Template: v1alpha1.VolumeClaimTemplate{StorageClassName: c.wanted}, Claim: c.claim}))
		})
	}
}

// P7: what a claim without a volume asks for may not be changed, as Kubernetes forbids it: a size
// that no volume has, or a VolumeAttributesClass that the driver does not know, would keep the
// member from ever starting, also when the user has corrected it.
func TestP7AClaimThatGetsNoVolumeIsRecreatedAsTheSpecSaysByNow(t *testing.T) {
	for name, c := range map[string]struct {
		size, wantedSize   string
		class, wantedClass *string
		volume             string
		want               bool
	}{
		"it asks for too much":                           {"100Ti", "100Gi", nil, nil, "", true},
		"it asks for too little":                         {"10Gi", "20Gi", nil, nil, "", true},
		"it asks for what the spec says, otherwise said": {"1Ti", "1024Gi", nil, nil, "", false},
		"the API server has rounded what it asks for":    {"1206241565082m", "1.1234Gi", nil, nil, "", false},
		"it has a volume":                                {"10Gi", "20Gi", ptr.To("gold"), nil, "pv", false},
		"it asks for another VolumeAttributesClass":      {"1Gi", "1Gi", ptr.To("gold"), ptr.To("silver"), "", true},
		"it asks for one, and none is wanted":            {"1Gi", "1Gi", ptr.To("gold"), nil, "", true},
		"it gets its VolumeAttributesClass later":        {"1Gi", "1Gi", nil, ptr.To("gold"), "", false},
		"it asks for the one that is wanted":             {"1Gi", "1Gi", ptr.To("gold"), ptr.To("gold"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			pending := claim(func(p *corev1.PersistentVolumeClaim) {
				p.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.size)}
				p.Spec.StorageClassName, p.Spec.VolumeAttributesClassName, p.Spec.VolumeName = ptr.To("fast"), c.class, c.volume
			})
			v := observation.Volume{Claim: pending, Template: v1alpha1.VolumeClaimTemplate{
				Storage: resource.MustParse(c.wantedSize), StorageClassName: ptr.To("fast"), VolumeAttributesClassName: c.wantedClass,
			}}
			assert.Equal(t, c.want, IsReplaceable(&observation.Snapshot{Instance: instance(), Now: clock()}, v))
		})
	}
}

// P5: an admission webhook may change what a claim asks for as it is made. To make the claim
// again would have the same end, without end.
func TestAClaimThatAWebhookHasChangedIsNotRecreatedForThat(t *testing.T) {
	asked := v1alpha1.VolumeClaimTemplate{Name: "tikv", Storage: resource.MustParse("10Gi"), StorageClassName: ptr.To("fast"), VolumeAttributesClassName: ptr.To("gold")}
	other, classless := asked, asked
	other.StorageClassName, classless.StorageClassName = ptr.To("other"), nil
	larger := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("16Gi")
	}
	class := func(name string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To(name) }
	}
	for name, c := range map[string]struct {
		made   v1alpha1.VolumeClaimTemplate
		change func(*corev1.PersistentVolumeClaim)
		wanted v1alpha1.VolumeClaimTemplate
		want   bool
	}{
		"its size":                                     {asked, larger, asked, false},
		"its size, and it names no class":              {classless, larger, classless, false},
		"its class":                                    {asked, class("theirs"), asked, false},
		"its VolumeAttributesClass":                    {asked, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To("theirs") }, asked, false},
		"its class, and the spec asks for another":     {asked, class("theirs"), other, true},
		"nothing, and the spec is another":             {asked, func(*corev1.PersistentVolumeClaim) {}, other, true},
		"nothing, and its class, the default, is gone": {classless, class("gone"), classless, true},
	} {
		t.Run(name, func(t *testing.T) {
			made := Render(instance(), &corev1.PodTemplateSpec{}, c.made)
			c.change(made)
			s := &observation.Snapshot{Instance: instance(), Classes: map[string]*storagev1.StorageClass{"theirs": {}, "fast": {}}, Now: clock()}
			assert.Equal(t, c.want, IsReplaceable(s, observation.Volume{Template: c.wanted, Claim: made}))
		})
	}
}

// What becomes of the claim of a deleted Instance.
const (
	kept    = "kept"
	retired = "retired"
	deleted = "deleted"
)

// P3: data is deleted only where the policy says so, and the operators have made the claim.
func TestP3WhatBecomesOfAClaimOfADeletedInstance(t *testing.T) {
	policy := func(whenDeleted, whenScaled v1alpha1.ClaimPolicy) func(*v1alpha1.Instance) {
		return func(i *v1alpha1.Instance) {
			i.Spec.ClaimRetention.WhenDeleted, i.Spec.ClaimRetention.WhenScaled = whenDeleted, whenScaled
		}
	}
	retain := policy(v1alpha1.RetainClaim, v1alpha1.RetainClaim)
	discard := policy(v1alpha1.DeleteClaim, v1alpha1.RetainClaim)
	scaled := policy(v1alpha1.RetainClaim, v1alpha1.DeleteClaim)
	leaves := func(i *v1alpha1.Instance) { i.Spec.Retire = true }
	left := func(i *v1alpha1.Instance) {
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue}}
	}
	for name, c := range map[string]struct {
		instance  *v1alpha1.Instance
		ownerless bool
		claim     *corev1.PersistentVolumeClaim
		recorded  types.UID
		want      string
	}{
		"its member stays in the cluster":                  {instance(retain), false, claim(), "claim", kept},
		"and it is not wanted":                             {instance(discard), false, claim(), "claim", deleted},
		"its member has left":                              {instance(retain, left), false, claim(), "claim", retired},
		"its member was replaced, and it is not wanted":    {instance(discard, left), false, claim(), "claim", deleted},
		"a scale-in":                                       {instance(retain, leaves), false, claim(), "claim", retired},
		"a scale-in, and it is not wanted then":            {instance(scaled, leaves), false, claim(), "claim", deleted},
		"a scale-in, which whenDeleted does not count for": {instance(discard, leaves), false, claim(), "claim", retired},
		"a scale-in that its group's end has cut short":    {instance(scaled, leaves), true, claim(), "claim", kept},
		"one that was over before the group went":          {instance(scaled, leaves, left), true, claim(), "claim", deleted},
		"a user has given it":                              {instance(discard, left), false, claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationAdopt] = "basic-tikv-0" }), "claim", retired},
		"a user has given it, and the member stays":        {instance(discard), false, claim(annotated(v1alpha1.AnnotationAdopt, "basic-tikv-0")), "claim", kept},
		"it has come in place of a lost one":               {instance(discard), false, claim(), "lost", kept},
		"a version without marks has made it":              {instance(discard), false, claim(annotated("a", "b")), "claim", deleted},
		"it is unknown who has made it":                    {instance(discard), false, claim(annotated("a", "b")), "", kept},
	} {
		t.Run(name, func(t *testing.T) {
			s := &observation.Snapshot{Instance: c.instance, Ownerless: c.ownerless, Now: clock(), Volumes: []observation.Volume{{Claim: c.claim, Recorded: c.recorded}}}
			p := &planning.Plan{}
			PlanRetention(s, c.claim, p)
			got := kept
			if len(p.DeleteClaims) > 0 {
				got = deleted
			}
			if len(p.PatchClaims) > 0 {
				got = retired
				metadata, _ := p.PatchClaims[0].Body["metadata"].(map[string]any)
				assert.EqualValues(t, "claim", metadata["uid"], "no other claim of the name is marked")
			}
			assert.Equal(t, c.want, got)
			assert.LessOrEqual(t, len(p.DeleteClaims)+len(p.PatchClaims), 1)
		})
	}
}

// Which claims of an Instance its retention is about: those that carry its name, also of a volume
// that its spec does not name any more, and neither those that have left already nor those that go.
func TestP3WhichClaimsGoWithTheirInstance(t *testing.T) {
	named := func(name string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := claim(changes...)
		c.Name = name
		return c
	}
	// With room for more, so that appending to it would write into what others read.
	of := func(volume string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelVolume] = volume }
	}
	strays := make([]*corev1.PersistentVolumeClaim, 0, 9)
	strays = append(strays, named("raft-basic-tikv-0", of("raft"), annotated(v1alpha1.AnnotationRetired, "it left")), named("logs-basic-tikv-0", of("logs")),
		// A user has copied a claim, to keep its data, with all that it says.
		named("copy-of-tikv-basic-tikv-0", of("tikv")), named("unlabelled-basic-tikv-0"))
	s := &observation.Snapshot{
		Instance: instance(),
		Strays:   strays,
		Volumes: []observation.Volume{
			{Claim: named("own")}, {Claim: nil}, {Claim: named("bare", bare)},
			{Claim: named("another", labelled("basic-tikv-1", v1alpha1.ManagedBy))},
			{Claim: named("going", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) })},
		},
	}
	var names []string
	for _, c := range List(s) {
		names = append(names, c.Name)
	}
	assert.Equal(t, []string{"logs-basic-tikv-0", "unlabelled-basic-tikv-0", "own"}, names)
	assert.Equal(t, "raft-basic-tikv-0", strays[0].Name, "the snapshot is not changed")
}

// A claim that was made with the class that the spec asks for and has another one: a webhook did
// that, and would again for a new member.
func TestVOL04AClaimThatAWebhookGivesAnotherClassIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		applied, has string
		wanted       *string
		change       string
	}{
		"as it was made":                           {"1024 fast -", "fast", ptr.To("fast"), ""},
		"another one than it was made with":        {"1024 fast -", "slow", ptr.To("fast"), v1alpha1.ReasonClaimRejected},
		"the spec asks for another one now":        {"1024 slow -", "slow", ptr.To("fast"), ""},
		"and the one before was not given, either": {"1024 slow -", "other", ptr.To("fast"), ""},
		"the spec asks for none":                   {"1024 - -", "slow", nil, ""},
		"it does not say what it was made with":    {"", "slow", ptr.To("fast"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			made := claim(func(p *corev1.PersistentVolumeClaim) {
				p.Annotations[v1alpha1.AnnotationApplied], p.Spec.StorageClassName = c.applied, &c.has
				p.Status.Phase = corev1.ClaimBound
			})
			s := &observation.Snapshot{Instance: instance(), Volumes: []observation.Volume{{
				Template: v1alpha1.VolumeClaimTemplate{Name: "tikv", StorageClassName: c.wanted, Storage: resource.MustParse("1Ki")}, Name: made.Name, Claim: made, Recorded: made.UID,
			}}}
			assert.Equal(t, c.change, Status(s, &planning.Plan{})[0].Change)
		})
	}
}

// P3: Argo CD deletes what has no owner, is not in Git, and has the name of an Application as its label
// app.kubernetes.io/instance. A claim that exists is written for nothing else.
func TestP3ArgoCDDeletesNoClaim(t *testing.T) {
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelCluster: "shop"}}}
	made := Render(instance(), template, v1alpha1.VolumeClaimTemplate{Name: "tikv", Storage: resource.MustParse("1Gi")})
	assert.Equal(t, "shop", made.Labels[v1alpha1.LabelCluster])
	assert.Equal(t, "Prune=false,Delete=false", made.Annotations["argocd.argoproj.io/sync-options"])
	assert.Equal(t, "IgnoreExtraneous", made.Annotations["argocd.argoproj.io/compare-options"])

	patches := func(claim *corev1.PersistentVolumeClaim, recorded types.UID) []planning.ClaimPatch {
		t.Helper()
		claim.Status.Phase = corev1.ClaimBound
		claim.Spec.Resources.Requests = made.Spec.Resources.Requests
		s := &observation.Snapshot{Instance: instance(), Template: template, Now: clock(), Volumes: []observation.Volume{{
			Template: v1alpha1.VolumeClaimTemplate{Name: "tikv", Storage: resource.MustParse("1Gi")}, Name: claim.Name, Claim: claim, Recorded: recorded,
		}}}
		p := &planning.Plan{}
		Plan(s, p, 0)
		return p.PatchClaims
	}
	for name, recorded := range map[string]types.UID{"one that has lost its labels": "claim", "one that was restored": "lost"} {
		found := patches(claim(bare), recorded)
		if assert.Len(t, found, 1, name) {
			metadata, _ := found[0].Body["metadata"].(map[string]any)
			assert.Contains(t, metadata["labels"], v1alpha1.LabelCluster, name)
			assert.Contains(t, metadata["annotations"], "argocd.argoproj.io/sync-options", name)
		}
	}
	older := claim(func(c *corev1.PersistentVolumeClaim) { c.Labels = made.Labels })
	assert.Empty(t, patches(older, "claim"), "one of an older version")
}
