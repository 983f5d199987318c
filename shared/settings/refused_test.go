package settings_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// steps lets a group go some steps on its way.
func (p *memberSimulation) steps() {
	for range 6 {
		p.reconcile(p.Snapshot())
		p.endAll()
		p.advance()
	}
}

// DB-05: TiDB takes items one after the other, up to the first that it refuses, and
// does not show all of them.
func TestDB05ARestartClearsItemsAcceptedBesideARefusedOne(t *testing.T) {
	p := online(t, config{"fixed": "1"})
	p.halfway = true
	p.edit(func() { p.config = config{"a": bad, "c": "5", "fixed": "1"} })
	p.steps()
	assert.Equal(t, "5", p.processes["10.0.0.1"].values["c"])
	o := p.reconcile(p.Snapshot()).Outcome
	assert.Equal(t, v1alpha1.ReasonConfigRefused, o.Reason)
	assert.Contains(t, o.Message, "does not take a = -1 while")
	assert.NotContains(t, o.Message, "c = 5", "no member has refused it")

	p.edit(func() { p.config = config{"fixed": "1"} })
	p.converge() // and looks at what the members run with
	assert.Equal(t, []string{"db-0", "db-1"}, p.stopped)
}

func TestDB05ItemsAcceptedBesideARefusedOneAreSetBack(t *testing.T) {
	p := online(t, config{"c": "1"})
	p.edit(func() { p.config = config{"c": "2"} })
	p.converge()
	p.halfway = true
	p.edit(func() { p.config = config{"a": bad, "c": "3"} })
	p.steps()
	assert.Equal(t, "3", p.processes["10.0.0.1"].values["c"])
	p.edit(func() { p.config = config{"c": "2"} })
	p.converge()
	assert.Empty(t, p.stopped)
}

func TestDB05AnItemThatWasRefusedAloneWasNotTaken(t *testing.T) {
	p := online(t, config{"fixed": "1"})
	p.halfway = true
	p.edit(func() { p.config = config{"c": bad, "fixed": "1"} })
	p.steps()
	assert.Contains(t, p.reconcile(p.Snapshot()).Outcome.Message, "does not take c = -1 while")
	p.edit(func() { p.config = config{"fixed": "1"} })
	p.converge()
	assert.Empty(t, p.stopped)
}

func TestDB05AnotherValueThanTheRefusedOneMayBeThere(t *testing.T) {
	p := online(t, config{"fixed": "1"})
	p.edit(func() { p.config = config{"c": "5", "fixed": "1"} })
	p.reconcile(p.Snapshot()) // marks
	p.reconcile(p.Snapshot()) // gives, and the operator dies before it says so
	assert.Equal(t, "5", p.processes["10.0.0.1"].values["c"])
	p.restartOperator()
	p.edit(func() { p.config = config{"c": bad, "fixed": "1"} })
	p.steps()
	assert.Equal(t, v1alpha1.ReasonConfigRefused, p.reconcile(p.Snapshot()).Outcome.Reason)
	p.edit(func() { p.config = config{"fixed": "1"} })
	p.converge()
	assert.Equal(t, []string{"db-0", "db-1"}, p.stopped)
}

func TestDB05AnItemWhoseReplyWasLostIsSentAgain(t *testing.T) {
	p := online(t, config{"c": "1"})
	p.edit(func() { p.config = config{"c": "2"} })
	p.converge()
	p.deaf = true
	p.edit(func() { p.config = config{"c": "3"} })
	p.steps()
	assert.Equal(t, "3", p.processes["10.0.0.1"].values["c"])
	first := p.reconcile(p.Snapshot()).Outcome
	assert.Equal(t, v1alpha1.ReasonRequestFailed, first.Reason)
	assert.Contains(t, first.Message, "Instance db-0 cannot be given its configuration: the connection was closed: see")
	for range 12 {
		p.Now = p.Now.Add(time.Second)
		assert.Equal(t, first.Message, p.reconcile(p.Snapshot()).Outcome.Message, "whether it is just asked, given or left alone")
	}
	p.deaf = false
	p.edit(func() { p.config = config{"c": "2"} })
	p.converge()
	assert.Empty(t, p.stopped)
}

func TestAMemberIsNotSentAnItemTwice(t *testing.T) {
	p := online(t, config{"c": "1"})
	p.edit(func() { p.config = config{"c": "2"} })
	for range 6 {
		p.reconcile(p.Snapshot())
		p.reconcile(p.Snapshot()) // the Instances are ahead of their status
		p.advance()
	}
	p.converge()
	assert.Empty(t, p.stopped)
	assert.Equal(t, 2, p.posts, "each of the two once")
}

// A member that fails for another reason is not recreated with what the others refuse: it would
// not start with that, and one after the other they would all be gone.
func TestARefusedItemReachesNoMemberThatDoesNotServe(t *testing.T) {
	p := online(t, config{"fixed": "1"})
	p.edit(func() { p.config = config{"a": bad, "fixed": "1"} })
	p.steps()
	before := p.Instances()[1].Spec.Revision
	p.Break("db-1")
	p.Operate("db-1")
	for range 3 {
		p.Now = p.Now.Add(5 * time.Minute)
		p.reconcile(p.Snapshot())
	}
	assert.Equal(t, v1alpha1.ReasonConfigRefused, p.reconcile(p.Snapshot()).Outcome.Reason)
	assert.Equal(t, before, p.Instances()[1].Spec.Revision)
	p.advance()
	assert.NotNil(t, p.processes["10.0.0.2"], "it starts with the files that are known to be good")
	p.edit(func() { p.config = config{"fixed": "1"} })
	p.converge()
	assert.Empty(t, p.stopped)
}

// DB-05, KV-25: a member may take a number or a truth as text while it runs. It does not start with
// a file that has it so, and what is given online is not found out before its next start.
func TestTextIsNotGivenForANumberOrATruth(t *testing.T) {
	items := settings.Table{File: file, Items: []settings.Item{{Key: "n", Kind: settings.Fraction}, {Key: "b", Kind: settings.Bool}, {Key: "s", Kind: settings.Size}}}
	for wanted, why := range map[string]string{
		"n = 2":        "",
		"n = 0.5":      "",
		"n = \"2\"":    "n is not a number",
		"n = true":     "n is not a number",
		"b = true":     "",
		"b = \"true\"": "b is not a true or false",
		"b = 1":        "b is not a true or false",
		"s = \"1MB\"":  "",
		"s = 1024":     "",
	} {
		assert.Equal(t, why, items.AppliesOnline(map[string]string{file: ""}, map[string]string{file: wanted}).Reason(), wanted)
	}
}
