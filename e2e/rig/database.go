package rig

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/pdsim"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

const (
	// heartbeats is how often a store tells PD that it lives.
	heartbeats = time.Second
	// election is how long PD members take to find another leader.
	election = 500 * time.Millisecond
	// storeCapacity in bytes.
	storeCapacity = 100 << 30
)

var (
	errNoLeader = errors.New("PD has no leader")
	errNoPD     = errors.New("no PD answers")
)

// Databases are the databases of a rig, one per PDGroup.
type Databases struct {
	ctx   context.Context
	shape scenario.Database
	// addresses are those of PD's Services, as of pods.
	addresses *addresses
	// etcd answers what is no HTTP/1 on PD's ports; nil where nothing else asks.
	etcd *etcd
	mu   sync.Mutex
	all  map[types.NamespacedName]*Database
}

// newDatabases returns databases that live until the context ends.
func newDatabases(ctx context.Context, shape scenario.Database) *Databases {
	return &Databases{ctx: ctx, shape: shape, addresses: newAddresses(), all: map[types.NamespacedName]*Database{}}
}

// Of returns the database of a PDGroup; no member needs to have started.
func (d *Databases) Of(group types.NamespacedName) (*Database, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if db := d.all[group]; db != nil {
		return db, nil
	}
	db := &Database{
		ctx: d.ctx, shape: d.shape, group: group, data: map[types.UID]string{}, firstClaim: map[string]types.UID{},
		running: map[string]bool{}, stores: map[types.UID]*store{}, flushed: map[string]int{}, led: map[string]int{}, logs: map[string]*logOf{},
	}
	var err error
	if db.service, err = d.listen(db); err != nil {
		return nil, fmt.Errorf("open Service of PDGroup %s: %w", group, err)
	}
	d.all[group] = db
	return db, nil
}

// Dialer reaches the PD of every PDGroup with the operators' own client.
func (d *Databases) Dialer(options ...pdclient.DialerOption) pd.Dialer {
	return func(group types.NamespacedName) (pd.Client, error) {
		db, err := d.Of(group)
		if err != nil {
			return nil, err
		}
		return pdclient.NewDialer("http://"+db.service, options...)(group)
	}
}

// List returns all databases, by name.
func (d *Databases) List() []*Database {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.all), func(a, b *Database) int { return strings.Compare(a.group.String(), b.group.String()) })
}

// Database is what the pods of one PDGroup make together. What a member knows
// lies on its claim.
type Database struct {
	// Servers of TiDB.
	Servers model.Servers
	// Captures of TiCDC.
	Captures model.Captures

	ctx     context.Context
	shape   scenario.Database
	group   types.NamespacedName
	service string      // where PD's Service listens, host:port
	secured *tls.Config // how PD serves over TLS; nil without

	mu         sync.Mutex
	pd         *pdsim.PD // nil before a quorum of initial members has met
	members    []string  // the initial members
	config     map[string]any
	data       map[types.UID]string
	firstClaim map[string]types.UID // the first claim of each initial member
	running    map[string]bool
	stores     map[types.UID]*store
	bootstraps int
	alarms     []model.Alarm
	// flushed is how often the process of each pod ended with its log backups
	// written out.
	flushed map[string]int
	// logs are the log backups, by where they are written.
	logs map[string]*logOf
	// led is how often the process of each pod ended while its store led regions.
	led map[string]int
}

// store is one store's process and what it keeps on its claim.
type store struct {
	id      uint64
	pod     string
	running bool
	// started is when its process did.
	started time.Time
	// flushed says that the process has written its log backups out when it had no
	// leader.
	flushed bool
}

// Member is a PD process that starts.
type Member struct {
	// Name of the member.
	Name string
	// Claim that its data is on.
	Claim types.UID
	// InitialCluster are the names in --initial-cluster; empty with --join.
	InitialCluster []string
	// Force is --force-new-cluster.
	Force bool
	// Config is its configuration file, decoded.
	Config map[string]any
	// TLS is how it serves; nil without TLS.
	TLS *tls.Config
}

// StartMember starts a PD process. An error is one that the process ends with.
func (d *Database) StartMember(m Member) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.secure(m.TLS); err != nil {
		return err
	}
	if name, kept := d.data[m.Claim]; kept {
		if name != m.Name {
			return fmt.Errorf("the data of member %s is on the claim of %s", name, m.Name)
		}
		d.running[name] = true
		if m.Force && d.pd != nil {
			return d.pd.ForceNewCluster(name)
		}
		return d.up(name)
	}
	switch {
	case m.Force:
		// Without data there is nothing to make one member of: a cluster is born.
		d.bootstraps++
		if d.pd != nil {
			d.pd.Bootstrap(m.Name)
		}
		return errors.New("a cluster was bootstrapped by one member alone")
	case len(m.InitialCluster) == 0:
		return d.join(m)
	case d.pd != nil && (d.firstClaim[m.Name] != "" || !slices.Contains(d.members, m.Name)):
		// It has forgotten that there is a cluster, and bootstraps another one.
		d.bootstraps++
		d.pd.Bootstrap(m.Name)
		return errors.New("a second cluster was bootstrapped")
	case len(d.members) > 0 && !slices.Equal(d.members, m.InitialCluster):
		d.raise(model.SecondClusterID, fmt.Sprintf("member %s was given --initial-cluster %v, others %v", m.Name, m.InitialCluster, d.members))
		return errors.New("member count is unequal")
	}
	d.members, d.config = m.InitialCluster, m.Config
	d.data[m.Claim], d.firstClaim[m.Name], d.running[m.Name] = m.Name, m.Claim, true
	return d.up(m.Name)
}

// secure has the members serve with TLS or without. All of a PDGroup do the same, and
// those that were stopped find each other only if PD lists URLs of the new scheme.
func (d *Database) secure(with *tls.Config) error {
	if d.pd != nil && (with == nil) != (d.secured == nil) {
		if slices.Contains(slices.Collect(maps.Values(d.running)), true) {
			return errors.New("the others speak the other one of http and https")
		}
		wanted := "http://"
		if with != nil {
			wanted = "https://"
		}
		for name, urls := range d.pd.PeerURLs() {
			if !slices.ContainsFunc(urls, func(url string) bool { return strings.HasPrefix(url, wanted) }) {
				return fmt.Errorf("member %s is reached at %v alone", name, urls)
			}
		}
	}
	d.secured = with
	return nil
}

func (d *Database) join(m Member) error {
	if d.pd == nil {
		return errNoPD
	}
	if err := d.pd.Join(m.Name); err != nil {
		return err
	}
	d.data[m.Claim], d.running[m.Name] = m.Name, true
	return nil
}

// up lets a member that has its data take part.
func (d *Database) up(name string) error {
	if d.pd != nil {
		return d.pd.SetHealthy(name, true)
	}
	if len(d.running) <= len(d.members)/2 {
		return nil // it waits for the others
	}
	id := fnv.New64a()
	_, _ = fmt.Fprint(id, d.group, d.firstClaim) // a hash never fails to write
	peer := func(member string) string { return names.PodHost(member, d.group.Name, d.group.Namespace, "") }
	var unstarted []string
	for _, member := range d.members {
		if d.firstClaim[member] == "" {
			unstarted = append(unstarted, member)
		}
	}
	born, err := pdsim.New(pdsim.Options{
		Members:   d.members,
		Unstarted: unstarted,
		ClientURL: func(member string) string { return d.scheme() + peer(member) + ":2379" },
		PeerURL:   func(member string) string { return d.scheme() + peer(member) + ":2380" },
		Services:  []string{d.serviceName()},
		ClusterID: id.Sum64() | 1,
		Election:  election,
		Load:      d.shape.Load.Duration,
		Cluster:   model.Options{Config: d.config, Regions: d.shape.Regions, Clock: model.NewScaledClock(cmp.Or(d.shape.Speed, 1))},
	})
	if err != nil {
		return fmt.Errorf("found PD cluster %s: %w", d.group, err)
	}
	for _, member := range d.members {
		if err := born.SetHealthy(member, d.running[member]); err != nil {
			return err
		}
	}
	d.pd = born
	d.bootstraps++
	go d.beat()
	return nil
}

// ServeMember answers as a member of PD, once it takes part.
func (d *Database) ServeMember(name string) http.HandlerFunc {
	handler := func() http.Handler {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.pd == nil {
			return nil
		}
		return d.pd.Handler(name)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		answers := handler()
		if answers == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answers.ServeHTTP(w, r)
	}
}

// scheme is how the URLs of the members begin.
func (d *Database) scheme() string {
	if d.secured != nil {
		return "https://"
	}
	return "http://"
}

// URL is where PD's Service listens.
func (d *Database) URL() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scheme() + d.service
}

// identity is how PD serves over TLS, nil without.
func (d *Database) identity() *tls.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.secured
}

func (d *Database) serviceName() string {
	return names.ServiceHost(d.group.Name, d.group.Namespace, "") + ":2379"
}

// StopMember stops a PD process. One on a node that is lost can only not be reached any more.
func (d *Database) StopMember(name string, lost bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running[name] {
		return nil
	}
	delete(d.running, name)
	if d.pd == nil {
		return nil
	}
	if len(d.running) > 0 && d.pd.Leader() == name {
		d.led[name]++
	}
	if lost {
		return d.pd.Disconnect(name)
	}
	return d.pd.SetHealthy(name, false)
}

// setting is the value of an item that PD stores, by its key with dots.
func (d *Database) setting(key string) (string, error) {
	model := d.Model()
	if model == nil {
		return "", errNoPD
	}
	cluster := model.Cluster()
	if cluster == nil {
		return "", errNoLeader
	}
	table, name, _ := strings.Cut(key, ".")
	value, found := cluster.ConfigSection(table)[name]
	if !found {
		return "", fmt.Errorf("PD shows no setting %s", key)
	}
	return fmt.Sprint(value), nil
}

// Store is a TiKV or TiFlash process that starts.
type Store struct {
	// Claim that its data is on.
	Claim types.UID
	// Address that it advertises, host:port.
	Address string
	// Version without the v.
	Version string
	// TiFlash says that it is no TiKV.
	TiFlash bool
}

// StartStore starts a store's process, which registers with PD. An error is one
// that the process ends with.
func (d *Database) StartStore(s Store) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster := d.leader()
	if cluster == nil {
		return errNoLeader
	}
	if s.TiFlash && !cluster.HasPlacementRules() {
		return errors.New("PD's placement rules are off")
	}
	kept := d.stores[s.Claim]
	if kept == nil {
		id, err := cluster.AllocID()
		if err != nil {
			return fmt.Errorf("get a store id: %w", err)
		}
		kept = &store{id: id}
	}
	meta := model.StoreMeta{ID: kept.id, Address: s.Address, Version: s.Version, StartTimestamp: time.Now().Unix()}
	if s.TiFlash {
		meta.Labels = []model.Label{{Key: "engine", Value: "tiflash"}}
	}
	if err := registerStore(cluster, meta); err != nil {
		return err
	}
	kept.running, kept.flushed, kept.started = true, false, time.Now()
	kept.pod, _, _ = strings.Cut(s.Address, ".")
	d.stores[s.Claim] = kept
	return d.sign(cluster, kept)
}

// registerStore puts a store into PD's books; the first one bootstraps the cluster.
func registerStore(cluster *model.Cluster, meta model.StoreMeta) error {
	if cluster.IsBootstrapped() {
		return cluster.PutStore(meta)
	}
	if len(meta.Labels) > 0 {
		return errors.New("no TiKV has been there yet")
	}
	region, err := cluster.AllocID()
	if err != nil {
		return fmt.Errorf("get a region id: %w", err)
	}
	peer, err := cluster.AllocID()
	if err != nil {
		return fmt.Errorf("get a peer id: %w", err)
	}
	err = cluster.Bootstrap(meta, region, peer)
	if errors.Is(err, model.ErrAlreadyBootstrapped) {
		return cluster.PutStore(meta)
	}
	return err
}

// StopStore stops the process of the store that has its data on a claim.
func (d *Database) StopStore(claim types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.stores[claim]
	if kept == nil {
		return
	}
	if kept.running && kept.flushed {
		d.flushed[kept.pod]++
	}
	if cluster := d.leader(); cluster != nil {
		if s, err := cluster.Store(kept.id); err == nil && kept.running && s.Leaders > 0 {
			d.led[kept.pod]++
		}
		cluster.SetStoreAlive(kept.id, false)
	}
	kept.running = false
}

// FlushLogBackups has the store on a claim write its log backups out, and returns
// which these are. One that leads regions gets new data at once.
func (d *Database) FlushLogBackups(claim types.UID) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept, cluster := d.stores[claim], d.leader()
	if d.shape.LogBackup == "" || kept == nil || cluster == nil {
		return nil
	}
	s, err := cluster.Store(kept.id)
	kept.flushed = err == nil && s.Leaders == 0
	return []string{d.shape.LogBackup}
}

// StoreStatus is what the TiFlash on a claim says of itself.
func (d *Database) StoreStatus(claim types.UID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if kept := d.stores[claim]; kept == nil || !kept.running || time.Since(kept.started) < d.shape.CatchUp.Duration {
		return "Idle"
	}
	return "Running"
}

// Flushed is how often the process of each pod ended with its log backups written
// out.
func (d *Database) Flushed() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.flushed)
}

// Led is how often the process of each pod ended while its store led regions, or while
// it led a PD of which another member ran.
func (d *Database) Led() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.led)
}

// Evicting are the stores, by the names of their pods, from which PD keeps leaders
// away.
func (d *Database) Evicting() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster := d.leader()
	if cluster == nil {
		return nil
	}
	ids, _, err := cluster.Evicted()
	if err != nil {
		return nil
	}
	out := []string{}
	for _, kept := range d.stores {
		if slices.Contains(ids, kept.id) {
			out = append(out, kept.pod)
		}
	}
	return out
}

// Held are the services that have PD hold old data back, the schedulers that are paused, and the
// tasks of log backups.
func (d *Database) Held() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster := d.leader()
	if cluster == nil {
		return nil
	}
	out, err := cluster.Schedulers("paused")
	if err != nil {
		return nil
	}
	for _, s := range cluster.ServiceSafePoints() {
		out = append(out, s.ServiceID)
	}
	for _, l := range d.logs {
		if l.task != "" {
			out = append(out, "task "+l.task)
		}
	}
	return out
}

// LoseClaim is told that a claim has gone, and all that was on it.
func (d *Database) LoseClaim(claim types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if kept := d.stores[claim]; kept != nil {
		delete(d.stores, claim)
		if cluster := d.leader(); cluster != nil {
			cluster.LoseStoreData(kept.id)
		}
	}
}

// Serves says whether a TiDB server could work: PD leads and a store is there.
func (d *Database) Serves() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster := d.leader()
	return cluster != nil && cluster.IsBootstrapped()
}

// Replicated is content when every region has as many voters as PD wants, or as
// there are stores that serve, on stores that live, and as many learners as its
// placement rules want, or as there are stores for them.
func (d *Database) Replicated() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster := d.leader()
	if cluster == nil || !cluster.IsBootstrapped() {
		return errNoLeader
	}
	stores, err := cluster.Stores()
	if err != nil {
		return err
	}
	up := map[uint64]bool{}
	for _, s := range stores {
		if s.State == model.StoreUp && !s.Meta.IsTiFlash() {
			up[s.Meta.ID] = true
		}
	}
	regions, err := cluster.Regions()
	if err != nil {
		return err
	}
	want := min(cluster.MaxReplicas(), len(up))
	for _, r := range regions {
		have := 0
		for _, p := range r.Peers {
			if !p.Learner && up[p.StoreID] {
				have++
			}
		}
		if have < want {
			return fmt.Errorf("region %d has %d voters, %d are wanted", r.ID, have, want)
		}
	}
	if wanted, have := cluster.Learners(); have != wanted {
		return fmt.Errorf("the regions have %d learners, %d are wanted", have, wanted)
	}
	return nil
}

// RegionsOf counts the regions on the store of a pod, and those that it leads, and
// reports whether PD lists it.
func (d *Database) RegionsOf(pod string) (all, led int, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster := d.leader()
	if cluster == nil {
		return 0, 0, false
	}
	stores, err := cluster.Stores()
	at := slices.IndexFunc(stores, func(s model.StoreView) bool { return strings.HasPrefix(s.Meta.Address, pod+".") })
	if err != nil || at < 0 {
		return 0, 0, false
	}
	return stores[at].Regions, stores[at].Leaders, true
}

// leader returns what the PD leader knows, nil while there is none.
func (d *Database) leader() *model.Cluster {
	if d.pd == nil {
		return nil
	}
	return d.pd.Cluster()
}

// Replicate sets the placement rule of a table as TiDB does when its owner says
// how many replicas it is to have on TiFlash. The table is all that there is: each
// region gets so many learners.
func (d *Database) Replicate(table, replicas int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster := d.leader()
	if cluster == nil {
		return errNoLeader
	}
	rule := model.Rule{
		GroupID: "tiflash", ID: fmt.Sprintf("table-%d-r", table), Index: 120, Role: "learner", Count: replicas,
		LabelConstraints: []model.LabelConstraint{{Key: "engine", Op: "in", Values: []string{"tiflash"}}},
	}
	if replicas == 0 {
		return cluster.DeleteRule(rule.GroupID, rule.ID)
	}
	return cluster.SetRule(rule)
}

// Model returns the simulated PD, nil before it was bootstrapped.
func (d *Database) Model() *pdsim.PD {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pd
}

// Address is where PD's Service listens, host:port.
func (d *Database) Address() string { return d.service }

// Group is the PDGroup of the database.
func (d *Database) Group() types.NamespacedName { return d.group }

// Bootstraps is how many PD clusters were ever bootstrapped, each with an ID of its own.
func (d *Database) Bootstraps() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bootstraps
}

// Alarms returns all alarms so far.
func (d *Database) Alarms() []model.Alarm {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(d.alarms)
	if d.pd != nil {
		out = append(out, d.pd.Alarms()...)
	}
	return out
}

// Raise raises an alarm.
func (d *Database) Raise(kind model.AlarmKind, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.raise(kind, message)
}

func (d *Database) raise(kind model.AlarmKind, message string) {
	d.alarms = append(d.alarms, model.Alarm{At: time.Now(), Kind: kind, Subject: d.group.String(), Message: message})
}

// beat sends the stores' heartbeats until the rig ends.
func (d *Database) beat() {
	ticker := time.NewTicker(heartbeats)
	defer ticker.Stop()
	for {
		select {
		case <-d.ctx.Done():
			d.mu.Lock()
			_ = d.pd.Close() // nothing is left that could fail by it
			d.mu.Unlock()
			return
		case <-ticker.C:
		}
		d.mu.Lock()
		if cluster := d.leader(); cluster != nil {
			for _, s := range d.stores {
				err := d.sign(cluster, s)
				if isTombstoneError(err) {
					s.running = false // the process of a store that has left ends
				} else if err != nil && d.leader() == cluster {
					d.raise(model.LostData, fmt.Sprintf("heartbeat of store %d: %v", s.id, err))
				}
			}
		}
		d.mu.Unlock()
	}
}

// isTombstoneError says whether PD refuses a store because it is a tombstone, which it only
// becomes when nothing of it is left.
func isTombstoneError(err error) bool {
	var refused *model.Error
	return errors.As(err, &refused) && refused.Status == http.StatusGone
}

// sign gives a sign of life of a store, if it lives. Each leader of PD has to
// be told again.
func (d *Database) sign(cluster *model.Cluster, s *store) error {
	cluster.SetStoreAlive(s.id, s.running)
	if !s.running {
		return nil
	}
	return cluster.Heartbeat(s.id, model.StoreStats{Capacity: storeCapacity, Available: storeCapacity / 2, Used: storeCapacity / 2})
}
