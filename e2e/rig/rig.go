package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// Timeout is how long a rig waits for what must come, on a machine that does
// much else.
const Timeout = 3 * time.Minute

// besideOthers is how long an object may be without a word in a scenario that
// runs beside others, with which it shares the processor. One that runs alone is
// held to the five seconds of P11.
const besideOthers = 20 * time.Second

// Options shape a rig. The zero value will do.
type Options struct {
	// Name begins the name of the namespace; "rig" if empty.
	Name string
	// Delays of the simulated world.
	Delays Delays
	// Nodes is how many nodes there are, over three zones; 3 if zero.
	Nodes int
	// Tolerate are alarms that the test itself is the cause of.
	Tolerate []model.AlarmKind
	// ClusterWide lets the operators watch all namespaces, and the nodes.
	ClusterWide bool
	// Database shapes the simulated databases.
	Database scenario.Database
	// Members are the pods of another operator that are members of databases, where it runs in
	// place of the suite's; none if empty.
	Members []Membership
	// Privileged lets the namespace take pods of any kind, as another operator may make them.
	Privileged bool
	// CertManager has the controllers of cert-manager look after the namespace; after all
	// namespaces, and ClusterIssuers, with ClusterWide.
	CertManager bool
	// Relist is how often the operators' caches are filled again; zero means never.
	Relist time.Duration
	// ReasonDeadline is how long an object may be without a word on why it is not what
	// its spec asks for; five seconds if zero, and longer on a busy machine. Tests that make dozens of members
	// at once need more: the processor serves one operator after the other. What
	// an operator has not seen yet counts as unseen for twice as long.
	ReasonDeadline time.Duration

	// MessageDelay is for how long the operators let words of a status wait; as long as a second
	// of Kubernetes' if zero, so that what a status passes through can be awaited.
	MessageDelay time.Duration

	// OneProcess runs all operators in one process, as operators/all does: starting or
	// stopping one starts or stops all.
	OneProcess bool

	// Remedies has every command tried that a status tells a user to run, with what
	// this kubectl has shown already; none is tried if nil, but a Test has its own.
	Remedies *Kubectl

	// Installed says how an operator is to run, each time before it starts; if nil, with
	// full access and with flags of the rig's own.
	Installed func(ctx context.Context, operator string) (Process, error)
	// Neighbours are rigs in whose namespaces the operators of this one act as well.
	// They start none, and end after it.
	Neighbours []*Rig

	// Unjudged keeps only the newest version of each object, and judges none: what hundreds of
	// clusters cost would be the judgement otherwise. Alarms of the databases are still told.
	Unjudged bool

	// Fault of a watch, as faults.Parse reads it; none if empty.
	Fault string
	// Reach changes how an operator reaches the API server, each time before it
	// starts: the way in for a proxy.
	Reach func(operator string, config *rest.Config)
	// Dial changes how an operator reaches PD, each time before it starts.
	Dial func(operator string, dial pd.Dialer) pd.Dialer
	// Wrote is called when a write of an operator was answered and before the
	// operator sees the answer, from the operator's own goroutine: it must not
	// wait for the operator to end. n counts the writes of all operators from 1.
	Wrote func(n int, request Request)
}

// For returns the options with what a scenario asks for added.
func (o Options) For(s scenario.Scenario) Options {
	o.Name = s.Name
	o.Delays = Delays{
		Schedule: s.Options.Delays.Schedule.Duration, Start: s.Options.Delays.Start.Duration,
		Ready: s.Options.Delays.Ready.Duration, Stop: s.Options.Delays.Stop.Duration, Second: s.Options.Delays.Second.Duration,
	}
	o.Nodes = s.Options.Nodes
	o.Tolerate = slices.Concat(o.Tolerate, s.Options.Tolerate)
	o.ClusterWide = o.ClusterWide || s.Options.ClusterWide
	o.Database, o.CertManager = s.Options.Database, s.Options.CertManager
	if o.Reach == nil {
		o.Fault = s.Options.Fault
	}
	if o.ReasonDeadline == 0 && !s.Options.ClusterWide {
		o.ReasonDeadline = besideOthers
	}
	return o
}

// Rig is one namespace with a simulated world around it, and the operators that
// were started. It is a scenario.World.
type Rig struct {
	// Databases are the simulated databases.
	Databases *Databases
	// Watcher sees all that happens.
	Watcher *Watcher
	// Requests of the operators.
	Requests *Requests

	namespace string
	injector  *faults.Injector
	client    client.WithWatch
	user      client.Client // what it writes, the watcher has seen before a test looks again
	ctx       context.Context
	cancel    context.CancelFunc
	plane     *controlplane.ControlPlane
	options   Options
	actor     *actor

	mu        sync.Mutex
	operators map[string]*running
}

var _ scenario.World = (*Rig)(nil)

// Open makes a namespace with a simulated world around it, in which no operator
// runs yet. The world lives until Close, or until the context ends.
func Open(ctx context.Context, plane *controlplane.ControlPlane, options Options) (*Rig, error) {
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, fmt.Errorf("open rig: %w", err)
	}
	c, err := client.NewWithWatch(plane.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("open rig: %w", err)
	}
	r := &Rig{client: c, plane: plane, options: options, operators: map[string]*running{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.Databases = newDatabases(r.ctx, options.Database)
	if len(options.Members) > 0 {
		r.Databases.etcd = newEtcd(r.ctx)
	}
	r.Requests = &Requests{wrote: options.Wrote, counts: map[Request]int{}, conflicts: map[Request]int{}, writesIn: map[string]int{}}
	if err := r.open(options); err != nil {
		return nil, errors.Join(fmt.Errorf("open rig: %w", err), r.Close())
	}
	return r, nil
}

func (r *Rig) open(options Options) error {
	name := options.Name
	if name == "" {
		name = "rig"
	}
	fault, err := faults.Parse(cmp.Or(options.Fault, string(faults.None)))
	if err != nil {
		return err
	}
	r.injector = faults.New(fault, nil, nil)
	// The API server refuses pods that ask for more than they need, also an operator's.
	security := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	if options.Privileged {
		security = nil
	}
	if r.namespace, err = controlplane.NewNamespace(r.ctx, r.client, name, security); err != nil {
		return err
	}
	if err := createStorageClasses(r.ctx, r.client); err != nil {
		return err
	}
	if err := createNodes(r.ctx, r.client, r.namespace, cmp.Or(options.Nodes, standardNodes)); err != nil {
		return err
	}
	w := newWatcher(r.namespace, machine.StretchWait(cmp.Or(options.ReasonDeadline, reasonDeadline)))
	w.unjudged = options.Unjudged
	if r.Watcher, err = watchNamespace(r.ctx, r.plane.Config, w); err != nil {
		return err
	}
	r.user = r.Watcher.Follow(r.client)
	if options.CertManager {
		within := r.namespace
		if options.ClusterWide {
			within = ""
		}
		if err := startCertManager(r.ctx, r.plane, within); err != nil {
			return err
		}
	}
	if options.Remedies != nil {
		r.Watcher.tryRemedies(shell{plane: r.plane}, options.Remedies)
	}
	r.actor = &actor{
		databases: r.Databases, addresses: r.Databases.addresses, members: options.Members, delays: options.Delays, volumes: options.ClusterWide,
		fail: func(err error) { r.Watcher.violate("pod actor: %v", err) },
	}
	return newActor(r.ctx, r.plane.Config, r.namespace, r.actor)
}

// Kind implements scenario.World.
func (r *Rig) Kind() string { return scenario.Rig }

// Namespace of the rig.
func (r *Rig) Namespace() string { return r.namespace }

// User has full access; what it does is the user's doing.
func (r *Rig) User() client.Client { return r.user }

// Alarms returns the alarms that the test did not say it would cause.
func (r *Rig) Alarms() []model.Alarm {
	var out []model.Alarm
	for _, db := range r.Databases.List() {
		for _, alarm := range db.Alarms() {
			if !slices.Contains(r.options.Tolerate, alarm.Kind) {
				out = append(out, alarm)
			}
		}
	}
	return out
}

// Consent implements scenario.World.
func (r *Rig) Consent(claims ...string) { r.Watcher.Consent(claims...) }

// Await implements scenario.World: it looks at every version of every object,
// and gives up as soon as there is an alarm or a violation. An unjudged rig asks the databases
// for alarms in the end only: with hundreds, each look would take as long as all.
func (r *Rig) Await(ctx context.Context, holds func(Objects) error) error {
	var bad error // the watcher is locked while it calls
	alarmed := func() bool {
		if alarms := r.Alarms(); len(alarms) > 0 {
			bad = fmt.Errorf("alarm: %s", alarms[0])
		}
		return bad != nil
	}
	err := r.Watcher.Await(ctx, func(o Objects) error {
		if !r.options.Unjudged && alarmed() {
			return nil
		}
		if violations := r.Watcher.violations; len(violations) > 0 {
			bad = fmt.Errorf("violation: %s", violations[0])
			return nil
		}
		return holds(o)
	})
	if r.options.Unjudged && bad == nil {
		alarmed()
	}
	return errors.Join(err, bad)
}

// Observed implements scenario.World.
func (r *Rig) Observed() scenario.Observed {
	out := scenario.Observed{
		UIDs: r.Watcher.UIDs(), Bootstraps: map[string]int{}, Upgrades: map[string]model.Upgrades{}, Flushed: map[string]int{}, Led: map[string]int{}, Violations: r.Watcher.Violations(),
		Requests: r.Requests.Counts(), Versions: r.Watcher.Versions(), Tried: r.Watcher.Tried(),
	}
	for _, db := range r.Databases.List() {
		out.Bootstraps[db.Group().Name] = db.Bootstraps()
		out.Upgrades[db.Group().Name] = db.Servers.Upgrades()
		maps.Copy(out.Flushed, db.Flushed())
		maps.Copy(out.Led, db.Led())
		out.Evicting = append(out.Evicting, db.Evicting()...)
		out.Held = append(out.Held, db.Held()...)
	}
	for _, alarm := range r.Alarms() {
		out.Alarms = append(out.Alarms, alarm.String())
	}
	return out
}

// Describe renders every object of the suite's own kinds, a line each.
func (r *Rig) Describe() string {
	var out strings.Builder
	r.Watcher.Now(func(o Objects) {
		for _, key := range o.Keys() {
			if slices.Contains(v1alpha1.Kinds(), key.Kind) || key.Kind == kindPod {
				fmt.Fprintln(&out, objects.Describe(o.Get(key.Kind, key.Name)))
			}
		}
	})
	return out.String()
}

// LoseNode implements scenario.World.
func (r *Rig) LoseNode(ctx context.Context, node string) error { return r.actor.loseNode(ctx, node) }

// RecoverNode implements scenario.World.
func (r *Rig) RecoverNode(ctx context.Context, node string) error {
	return r.actor.recoverNode(ctx, node)
}

// FillDisk implements scenario.World.
func (r *Rig) FillDisk(ctx context.Context, node string) error { return r.actor.fillDisk(ctx, node) }

// FreeDisk implements scenario.World.
func (r *Rig) FreeDisk(ctx context.Context, node string) error { return r.actor.freeDisk(ctx, node) }

// Crash implements scenario.World.
func (r *Rig) Crash(ctx context.Context, pod string, times int) error {
	return r.actor.crash(ctx, r.namespace, pod, times)
}

// Serial implements scenario.World: here it is that of the Secret, at each connection.
func (r *Rig) Serial(context.Context, string) (string, error) { return "", scenario.ErrNotHere }

// WipeData implements scenario.World: the model's disks are lost with their claims only.
func (r *Rig) WipeData(context.Context, []string) error { return scenario.ErrNotHere }

// Replicated implements scenario.World.
func (r *Rig) Replicated(context.Context) error {
	for _, db := range r.Databases.List() {
		if err := db.Replicated(); err != nil {
			return fmt.Errorf("database of PDGroup %s: %w", db.Group().Name, err)
		}
	}
	return nil
}

// Regions implements scenario.World.
func (r *Rig) Regions(_ context.Context, pod string) (all, led int, err error) {
	for _, db := range r.Databases.List() {
		if all, led, found := db.RegionsOf(pod); found {
			return all, led, nil
		}
	}
	return 0, 0, fmt.Errorf("PD lists no store of pod %s", pod)
}

// Setting implements scenario.World.
func (r *Rig) Setting(_ context.Context, pod, key string) (string, error) {
	for _, db := range r.Databases.List() {
		if _, member := names.Slot(db.group.Name, pod); member && db.group.Namespace == r.namespace {
			return db.setting(key)
		}
	}
	return r.actor.setting(types.NamespacedName{Namespace: r.namespace, Name: pod}, key)
}

// Replicate implements scenario.World.
func (r *Rig) Replicate(_ context.Context, pdGroup string, table, replicas int) error {
	db, err := r.Databases.Of(types.NamespacedName{Namespace: r.namespace, Name: pdGroup})
	if err != nil {
		return err
	}
	return db.Replicate(table, replicas)
}

// Query implements scenario.World: a simulated database keeps no rows.
func (r *Rig) Query(context.Context, scenario.SQL) (string, error) { return "", scenario.ErrNotHere }

// Login implements scenario.World: no server listens.
func (r *Rig) Login(context.Context, scenario.Login) (workload.Login, error) {
	return workload.Login{}, scenario.ErrNotHere
}
