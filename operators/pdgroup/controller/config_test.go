package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func configured(text string) func(*v1alpha1.PDGroup) {
	return func(g *v1alpha1.PDGroup) { g.Spec.Config = text }
}

// shows has PD show some items that it stores.
func shows(items map[string]string) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) { s.PD.Config = items }
}

// running has the pods of all Instances be ready for a while, with an address.
func running(s *observation.Snapshot) {
	for _, i := range s.Instances {
		i.Status.PodIP, i.Status.Revision, i.Status.ObservedGeneration = "10.0.0.1", i.Spec.Revision, i.Generation
	}
}

const eight = "[schedule]\nleader-schedule-limit = 8\n"

// PD-21, P4: an edit of what PD stores is given to PD, and restarts no member.
func TestPD21AStoredItemIsSentToPDAndRestartsNoMember(t *testing.T) {
	g := stored(bootstrapped, configured(eight))
	s := started(t, stored(), 3, running, shows(map[string]string{"schedule.leader-schedule-limit": "4"}))
	p := mustPlan(t, g, s)
	assert.Len(t, p.Config, 1)
	assert.Equal(t, v1alpha1.ReasonConfigPending, p.Outcome.Reason)
	assert.Contains(t, p.Outcome.Message, "schedule.leader-schedule-limit = 8 (it has 4)")
	assert.Equal(t, did{}, does(p))
	for _, c := range p.Instances {
		assert.Equal(t, c.Live.Spec.Revision, c.Desired.Spec.Revision, "a pod that is recreated gets the file that is known to be good")
	}
	// PD has taken it.
	s.PD.Config = map[string]string{"schedule.leader-schedule-limit": "8"}
	p = mustPlan(t, g, s)
	assert.Empty(t, p.Config)
	for _, c := range p.Instances {
		assert.Equal(t, p.Target.Hash, c.Desired.Spec.Revision)
		assert.Equal(t, c.Live.Spec.Revision, c.Desired.Spec.InPlaceFrom, "its pod stays")
		assert.Empty(t, c.Desired.Spec.StopPod)
	}
}

// PD-21: what the spec says is restored after any change; what it does not say is left
// alone, and so is everything while PD's configuration is unknown.
func TestPD21OnlyItemsThatDifferAreSentToPD(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		change  func(*observation.Snapshot)
		missing int
	}{
		"a value that a user has changed in PD":      {eight, shows(map[string]string{"schedule.leader-schedule-limit": "64"}), 1},
		"not one that the spec does not name":        {"", shows(map[string]string{"schedule.leader-schedule-limit": "64"}), 0},
		"nothing while PD does not answer":           {eight, pdUnreachable, 0},
		"nothing while its configuration is unknown": {eight, func(*observation.Snapshot) {}, 0},
		"nothing while another cluster's PD answers": {eight, func(s *observation.Snapshot) {
			s.PD.Config, s.PD.ClusterID = map[string]string{}, "9"
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, stored(configured(c.spec)), 3, running, c.change)
			p := mustPlan(t, stored(bootstrapped, configured(c.spec)), s)
			assert.Len(t, p.Config, c.missing)
			for _, i := range p.Instances {
				assert.Equal(t, i.Live.Spec.Revision, i.Desired.Spec.Revision)
			}
		})
	}
	for name, change := range map[string]func(*v1alpha1.PDGroup){
		"paused":    func(g *v1alpha1.PDGroup) { g.Spec.Paused = true },
		"suspended": func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true },
	} {
		s := started(t, stored(), 3, running, shows(map[string]string{"schedule.leader-schedule-limit": "4"}))
		assert.Empty(t, mustPlan(t, stored(bootstrapped, configured(eight), change), s).Config, name)
	}
}

// PD-21: the word on what PD refuses names item, value, answer and remedy.
func TestPD21ARefusedItemIsNamed(t *testing.T) {
	g := stored(bootstrapped, configured(eight+"[replication]\nisolation-level = \"rack\"\n"))
	now := pd.View{Config: map[string]string{"schedule.leader-schedule-limit": "8", "replication.isolation-level": `""`}}
	no := &pd.Refused{Call: "set-config", Status: 400, Body: "isolation-level must be one of location-labels or empty"}
	o := persisted.CheckItems(g, now, map[string]error{"replication.isolation-level": no})
	assert.Equal(t, step.KindStall, o.Kind)
	assert.Equal(t, v1alpha1.ReasonConfigRefused, o.Reason)
	assert.Equal(t, time.Minute, o.After)
	for _, word := range []string{`replication.isolation-level = "rack"`, "must be one of location-labels", "spec.config", "kubectl"} {
		assert.Contains(t, o.Message, word)
	}
	assert.Contains(t, persisted.CheckItems(g, now, nil).Message, `it accepted the change, but has ""`)
	early := &pd.Refused{Status: 400, Body: "[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"}
	o = persisted.CheckItems(g, now, map[string]error{"replication.isolation-level": early})
	assert.Equal(t, step.KindWait, o.Kind, "there is no store yet")
	now.Config["replication.isolation-level"] = `"rack"`
	assert.Equal(t, step.Done(), persisted.CheckItems(g, now, nil))
	assert.Equal(t, step.Done(), persisted.CheckItems(g, pd.View{Err: errors.New("gone")}, nil))
}

// PD-21: an edit of the version and of an item that only the new version knows is no mistake: members
// of the old one refuse the item until the last of them has been updated.
func TestPD21AnItemThatTheOldVersionRefusesWaitsForTheNewOne(t *testing.T) {
	g := stored(bootstrapped, configured(eight+"[pd-server]\nnew-item = 7\n"))
	g.Status.Version, g.Spec.Version = "v7.5.6", "v8.5.7"
	p := mustPlan(t, g, started(t, stored(func(g *v1alpha1.PDGroup) { g.Spec.Version = "v7.5.6" }), 3, running, shows(map[string]string{"schedule.leader-schedule-limit": "8"})))
	assert.Len(t, p.Config, 1)
	assert.NotNil(t, p.Lease.Take, "the roll does not wait for it")
	now := pd.View{Config: map[string]string{"schedule.leader-schedule-limit": "8"}}
	answers := map[string]error{"pd-server.new-item": &pd.Refused{Call: "set-config", Status: 400, Body: "config item new-item not found"}}
	assert.Equal(t, step.Done(), persisted.CheckItems(g, now, answers), "the plan waits for PD to show it")
	g.Status.Version = g.Spec.Version
	assert.Equal(t, v1alpha1.ReasonConfigRefused, persisted.CheckItems(g, now, answers).Reason)
	g.Status.Version = ""
	assert.Equal(t, v1alpha1.ReasonConfigRefused, persisted.CheckItems(g, now, answers).Reason, "there is no older one")
}

// PD-21: the operator does not turn off, again and again, what TiFlash turns on.
func TestPD21PlacementRulesStayWhileTiFlashNeedsThem(t *testing.T) {
	g := stored(bootstrapped, configured("[replication]\nenable-placement-rules = false\n"))
	s := started(t, stored(), 3, running, shows(map[string]string{"replication.enable-placement-rules": `"true"`}))
	missing := mustPlan(t, g, s).Config
	assert.Len(t, missing, 1)
	assert.Equal(t, step.KindDone, persisted.New(g, s).CheckConflicts(missing).Kind)
	flash := &v1alpha1.TiFlashGroup{}
	flash.Name = "basic-tiflash"
	s.Groups = []v1alpha1.Group{flash}
	o := persisted.New(g, s).CheckConflicts(missing)
	assert.Equal(t, v1alpha1.ReasonConfigRefused, o.Reason)
	assert.Contains(t, o.Message, "TiFlashGroup basic-tiflash needs placement rules")

	// A user has turned them off in PD: the spec turns them on, and TiFlash needs them on.
	g.Spec.Config = "[replication]\nenable-placement-rules = true\n"
	s.PD.Config["replication.enable-placement-rules"] = `"false"`
	missing = mustPlan(t, g, s).Config
	assert.Len(t, missing, 1)
	assert.Equal(t, step.KindDone, persisted.New(g, s).CheckConflicts(missing).Kind)
}

// PD-21: nothing is sent of a file with which no member would start again.
func TestPD21AQuotedNumberIsRefused(t *testing.T) {
	g := stored(bootstrapped, configured("[schedule]\nleader-schedule-limit = \"4\"\n"))
	s := started(t, stored(), 3, running, shows(map[string]string{"schedule.leader-schedule-limit": "4"}))
	o := persisted.New(g, s).CheckConflicts(mustPlan(t, g, s).Config)
	assert.Equal(t, v1alpha1.ReasonConfigRefused, o.Reason)
	assert.Contains(t, o.Message, `PD does not take schedule.leader-schedule-limit = "4" (it has 4: write it without quotation marks, or no member starts again)`)
}

// PD-21: PD takes both while it runs, shows what the file says, and does not start with the file.
func TestPD21AnItemOfTheWrongTypeIsRefused(t *testing.T) {
	for item, said := range map[string]string{
		"schedule.leader-schedule-limit = 4.0":   "PD does not take schedule.leader-schedule-limit = 4.0 (it has 4: write it without a fraction, or no member starts again)",
		"replication.location-labels = \"zone\"": `PD does not take replication.location-labels = "zone" (it has "zone": write it as a list, or no member starts again)`,
	} {
		g := stored(bootstrapped, configured(item+"\n"))
		s := started(t, stored(), 3, running, shows(map[string]string{"schedule.leader-schedule-limit": "4", "replication.location-labels": `"zone"`}))
		p := mustPlan(t, g, s)
		o := persisted.New(g, s).CheckConflicts(p.Config)
		assert.Equal(t, v1alpha1.ReasonConfigRefused, o.Reason, item)
		assert.Contains(t, o.Message, said)
		for _, c := range p.Instances {
			assert.Equal(t, c.Live.Spec.Revision, c.Desired.Spec.Revision, "a pod that is made now has the file that is known to be good")
		}
	}
}

// PD-21: a member that fails for another reason is not recreated with a file that PD has not taken:
// with the next one there would be no majority, and none would start.
func TestPD21AMemberThatDoesNotServeKeepsItsFileUntilPDHasTakenTheNewOne(t *testing.T) {
	fails := func(s *observation.Snapshot) {
		tells(s.Instances[1], time.Hour, "Ready", "False", v1alpha1.ReasonContainerCrashing, "PodReady", "False", v1alpha1.ReasonContainerCrashing, "Joined", "True", "MemberJoined", "Healthy", "False", "MemberUnhealthy")
		s.PD.Members[1].Healthy = false
	}
	g := stored(bootstrapped, configured("[schedule]\nleader-schedule-limit = 8.0\n"))
	s := started(t, stored(), 3, running, fails, shows(map[string]string{"schedule.leader-schedule-limit": "8"}))
	p := mustPlan(t, g, s)
	assert.Nil(t, p.Lease.Take)
	for _, c := range p.Instances {
		assert.Equal(t, c.Live.Spec.Revision, c.Desired.Spec.Revision, c.Desired.Name)
	}
	g.Spec.Config = eight
	p = mustPlan(t, g, s)
	for _, c := range p.Instances {
		assert.Equal(t, p.Target.Hash, c.Desired.Spec.Revision, c.Desired.Name)
		assert.Equal(t, c.Desired.Name == "basic-pd-1", c.Desired.Spec.InPlaceFrom == "", "its pod is recreated with the new file")
	}
}

// An operator that starts again, or a change of PD's leader, makes nothing of a group at
// rest whose pods were made with an older file.
func TestPD21AGroupAtRestStaysSoWhilePDDoesNotAnswer(t *testing.T) {
	g := stored(bootstrapped, configured(eight))
	wanted := map[string]string{persisted.File: eight}
	s := started(t, g, 3, running, pdUnreachable)
	given := func() step.Kind { return persisted.New(g, s).Progress(s.Instances[0], nil, wanted).Outcome.Kind }
	assert.Equal(t, step.KindWait, given())
	set := conditions.New(nil, g.Generation, clock())
	set.MarkTrue(v1alpha1.ConditionUpToDate, v1alpha1.ReasonUpToDate, "test")
	g.Status.Conditions = set.List()
	assert.Equal(t, step.KindDone, given())
	g.Generation++
	assert.Equal(t, step.KindWait, given(), "the spec was edited")
}
